"""When a result should not be believed without a second look, as hyperfine warns.

A doubt never hides a result; what must not be reported at all is refused, in `measure`.
"""

from __future__ import annotations

import statistics
from typing import Any

from .stats import distances_from_median

TOO_SHORT_S = 0.05
# Ten standard deviations: 1.4826 median absolute deviations are one. Iglewicz and Hoaglin, 1993; as hyperfine does.
OUTLIER = 10 * 1.4826
# An outlier by less than this share of the median is noise that a very steady series makes look large.
SIGNIFICANT = 0.10
BUSY_OTHERS = 0.25
# Reading bitmaps and inode tables, to write into, is 2 % of what is extracted.
READ_THOUGH_HOT = 0.03

Record = dict[str, Any]


def doubts(runs: list[Record], cores: int) -> list[str]:
    """What is doubtful about the measured runs of one side, in the order they were made."""
    times = [float(run["wall_s"]) for run in runs]
    found = [once(runs), short(times), slow_first(times), outliers(times), others(runs, cores), hot_reads(runs)]
    return [doubt for doubt in found if doubt]


def once(runs: list[Record]) -> str | None:
    """On slowfs the latency is set, and runs differ little."""
    return "was run only once" if len(runs) == 1 and runs[0]["state"] != "slow" else None


def short(times: list[float]) -> str | None:
    median = statistics.median(times)
    return f"takes only {median * 1000:.0f} ms, less than 50" if median < TOO_SHORT_S else None


def is_outlier(times: list[float], position: int) -> bool:
    median = statistics.median(times)
    far = abs(distances_from_median(times)[position]) > OUTLIER
    return far and abs(times[position] - median) > SIGNIFICANT * median


def slow_first(times: list[float]) -> str | None:
    if len(times) > 2 and times[0] > statistics.median(times) and is_outlier(times, 0):
        return f"took {times[0]:.3f} s the first time, far more than later"
    return None


def outliers(times: list[float]) -> str | None:
    count = sum(is_outlier(times, position) for position in range(1, len(times)))
    return f"has {count} outliers in {len(times)} runs" if count else None


def load(machine: Record) -> str | None:
    """Load before the first pair; later it is our own, and `others` tells more."""
    average, cores = float(machine["load_average"]), int(machine["cores"])
    return f"the load average was {average:.1f} on {cores} cores before the start" if average > cores else None


def others(runs: list[Record], cores: int) -> str | None:
    """Processor time that went to nobody in the run. The kernel's own threads are in it, so a little is normal."""
    shares = [run["other_cpu_s"] / (run["wall_s"] * cores) for run in runs]
    share = statistics.median(shares)
    return f"had to share: others used {share:.0%} of the processors" if share > BUSY_OTHERS else None


def hot_reads(runs: list[Record]) -> str | None:
    if runs[0]["state"] != "hot":
        return None
    read = max(run["read_bytes"] for run in runs)
    much = read > READ_THOUGH_HOT * runs[0]["bytes"]
    return f"read {read / 1e6:,.0f} MB from the device although hot" if much else None
