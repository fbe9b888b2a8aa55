"""Tables from raw records: medians with least and greatest, ratios with their interval, goals, warnings.

A pair's first line compares stook with the fastest rival that counts; then come the other rivals. A goal stands beside
the rival that it names, or else in the first line. Pairs without a result say why.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from .measure import LATENCY
from .pair import SLOW
from .results import MEASURED, REFUSED, Record

RESAMPLES = 5_000

HEADINGS = ["work", "on", "stook", "rival", "ratio", "goal", "result", "peak memory", "rounds"]


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians and its interval of 95 %."""

    value: float
    low: float
    high: float

    @staticmethod
    def of(ours: list[float], theirs: list[float]) -> Ratio:
        """With the percentile bootstrap's interval, which is rough with five samples a side.

        Source: Efron and Tibshirani, An introduction to the bootstrap, 1993, chapter 13.
        """
        rng = random.Random(1)

        def drawn(samples: list[float]) -> float:
            return statistics.median(rng.choices(samples, k=len(samples)))

        ratios = sorted(drawn(ours) / drawn(theirs) for _ in range(RESAMPLES))
        low, high = (ratios[round(share * (RESAMPLES - 1))] for share in (0.025, 0.975))
        return Ratio(statistics.median(ours) / statistics.median(theirs), low, high)


@dataclass(frozen=True)
class Aim:
    """The goal of one line of a pair: a ratio, and whether we took more memory than the goal allows."""

    ratio: float | None
    is_over: bool


@dataclass(frozen=True)
class Outcome:
    """A pair with all that is derived from its runs."""

    pair: Record
    runs: dict[str, list[Record]]

    @property
    def key(self) -> str:
        return f"{self.pair['pair']} on {self.places}"

    @property
    def places(self) -> str:
        """Where the sets are, if elsewhere, and the outputs. Older records have sets and outputs at one place."""
        place = str(self.pair["place"])
        return ", ".join(dict.fromkeys([str(self.pair.get("set_place", place)), place]))

    @property
    def rounds(self) -> str:
        """How many there were, and how many there would have been with more time."""
        count, wanted = len(self.runs[self.ours]), self.pair.get("rounds")
        return f"{count} of {wanted}" if wanted and wanted > count else str(count)

    @property
    def measured(self) -> bool:
        return bool(self.pair["status"] == MEASURED)

    def times(self, side: str) -> list[float]:
        return [run["wall_s"] for run in self.runs[side]]

    def median(self, side: str) -> float:
        return statistics.median(self.times(side))

    def ratio(self, side: str) -> Ratio:
        return Ratio.of(self.times(self.ours), self.times(side))

    @property
    def ours(self) -> str:
        return str(self.pair["sides"][0]["side"])

    def rivals(self) -> list[str]:
        """Those that count come first, the fastest of them at the head."""
        sides = self.pair["sides"][1:]
        ordered = sorted(sides, key=lambda side: (not side["counts"], self.median(side["side"])))
        return [side["side"] for side in ordered]

    def goal_against(self, rival: str, is_first: bool) -> Aim:
        """What the goal says about a line. Memory is judged in the first; older records name no rivals."""
        goal = self.pair["goal"]
        ratio = goal.get("against", {}).get(rival, goal["ratio"] if is_first else None)
        limit = goal["peak_bytes"] if is_first else None
        return Aim(ratio, limit is not None and self.peak_bytes > limit)

    @property
    def peak_bytes(self) -> int:
        return max(int(run["max_rss_bytes"]) for run in self.runs[self.ours])


def outcomes(records: Iterable[Record]) -> list[Outcome]:
    """The pairs in the order they were measured, each with its runs. Runs of refused pairs count for nothing."""
    runs: dict[tuple[object, object], dict[str, list[Record]]] = {}
    found = []
    for record in records:
        key = (record.get("place"), record.get("pair"))
        if record["kind"] == "run":
            runs.setdefault(key, {}).setdefault(record["side"], []).append(record)
        elif record["kind"] == "pair":
            sides = runs.pop(key, {})
            found.append(Outcome(record, sides if record["status"] == MEASURED else {}))
    return found


def rows(outcome: Outcome) -> list[list[str]]:
    """The lines of one pair."""
    pair = outcome.pair
    state = f"slowfs {LATENCY}" if pair["state"] == SLOW else pair["state"]
    work = f"{pair['work']} {pair['set']}, {state}"
    if not outcome.measured:
        return [[work, outcome.places, f"{pair['status']}: {pair['reason']}"]]
    lines = []
    for position, rival in enumerate(outcome.rivals()):
        ratio = outcome.ratio(rival)
        head = [work, outcome.places, timing(outcome.times(outcome.ours))] if position == 0 else ["", "", ""]
        goal = outcome.goal_against(rival, is_first=position == 0)
        result = [*result_of(ratio, goal), *(facts_of_ours(outcome) if position == 0 else ["", ""])]
        theirs = f"{rival} {timing(outcome.times(rival))}"
        lines.append([*head, theirs, f"{ratio.value:.3g} ({ratio.low:.3g}-{ratio.high:.3g})", *result])
    return lines


def timing(times: list[float]) -> str:
    return f"{statistics.median(times):.3f} s ({min(times):.3f}-{max(times):.3f})"


def result_of(ratio: Ratio, goal: Aim) -> list[str]:
    """A goal and whether it is met."""
    if goal.ratio is None:
        return ["", "not met: memory" if goal.is_over else ""]
    missed = [name for name, bad in (("time", ratio.value > goal.ratio), ("memory", goal.is_over)) if bad]
    result = f"not met: {', '.join(missed)}" if missed else "met"
    return [f"{goal.ratio:g}", result + (", unsure" if ratio.low <= goal.ratio <= ratio.high else "")]


def facts_of_ours(outcome: Outcome) -> list[str]:
    """Our peak memory with its goal if it has one, and the rounds."""
    limit = outcome.pair["goal"]["peak_bytes"]
    return [f"{outcome.peak_bytes / 1e6:.0f} MB" + (f" of {limit / 1e6:.0f}" if limit else ""), outcome.rounds]


def plain(lines: list[list[str]]) -> str:
    """Aligned columns. A line that says why there is no result does not widen them."""
    complete = [line for line in lines if len(line) == len(lines[0])]
    widths = [max(map(len, column)) for column in zip(*complete, strict=True)]
    widths[:2] = [max(len(line[column]) for line in lines) for column in range(2)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def markdown(lines: list[list[str]]) -> str:
    filled = [line + [""] * (len(lines[0]) - len(line)) for line in lines]
    filled.insert(1, ["---"] * len(lines[0]))
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in filled)


def notes(found: list[Outcome], machine: Record) -> list[str]:
    """What a reader must know, then the warnings."""
    lines = ["median (least-greatest); ratio of medians (its 95 % interval); a goal is about the rival beside it"]
    if any("sync" in rival for outcome in found if outcome.measured for rival in outcome.rivals()):
        lines.append("tar does not make its volume durable, stook does; `tar, sync` is tar and then `sync -d`")
    lines += sorted({f"volumes of {v.pair['volume_size']}: {v.pair['pair']}" for v in found if v.pair["volume_size"]})
    average, cores = float(machine["load_average"]), int(machine["cores"])
    if average > cores:
        lines.append(f"warning: the load average was {average:.1f} on {cores} cores before the start")
    # Older records have none.
    return lines + [f"warning: {one.key}: {text}" for one in found for text in one.pair.get("warnings", [])]


def report(records: list[Record], as_markdown: bool = False) -> str:
    """Facts about the machine, the table, and the notes."""
    bullet = "- " if as_markdown else ""
    found = outcomes(records)
    if not found:
        return "no pair was measured"
    lines = [HEADINGS] + [row for one in found for row in rows(one)]
    said = [bullet + text for text in notes(found, records[0])]
    facts = [bullet + fact for fact in heading(records[0])]
    return "\n\n".join(map("\n".join, (facts, [markdown(lines) if as_markdown else plain(lines)], said)))


def heading(machine: Record) -> list[str]:
    filesystems = "; ".join(map(in_words, machine["places"]))
    return [
        f"{machine['cpu']}, {machine['cores']} cores, {int(machine['memory_bytes']) / 1e9:.1f} GB, "
        f"{machine['system']}, {machine['kernel']}, {filesystems}",
        f"{machine['stook']}, {machine['time']}, seed {machine['seed']}",
        "; ".join(dict.fromkeys(machine["rivals"].values())),
    ]


def in_words(place: Record) -> str:
    """A place of the machine, with that of its sets if they are elsewhere."""
    said = f"{place['filesystem']} ({place['options']})"
    sets = place.get("sets")
    return f"sets on {sets['filesystem']} ({sets['options']}), outputs on {said}" if sets else said


def refusals(records: list[Record]) -> list[str]:
    """Names of the pairs that were refused."""
    return [str(record["pair"]) for record in records if record.get("status") == REFUSED]


def commands(records: list[Record]) -> str:
    """The command templates, each once."""
    pairs = [record for record in records if record["kind"] == "pair"]
    shown = {(side["side"], side["command"]) for pair in pairs for side in pair["sides"]}
    return "\n".join(f"{side:10} {command}" for side, command in sorted(shown))
