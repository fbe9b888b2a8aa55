"""Tables from raw records: medians with least and greatest, ratios with their interval, goals, warnings.

A pair's first line compares stook with the fastest rival that counts; then come the other rivals. A goal stands beside
the rival that it names, or else in the first line. Pairs without a result say why. Older records lack some fields.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from .mounts import SLIDES
from .pair import SLOW, Pair
from .results import MEASURED, REFUSED, Record

RESAMPLES = 5_000
# Works of mounts that read every byte of the set.
READING = ("read", "read-4", "http-4", "link-4", "decode", "tar")
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
class Outcome:
    """A pair and its runs, by side."""

    pair: Record
    runs: dict[str, list[Record]]

    @property
    def places(self) -> str:
        """Where the sets are, if elsewhere, and the outputs."""
        place = str(self.pair["place"])
        return ", ".join(dict.fromkeys([str(self.pair.get("set_place", place)), place]))

    @property
    def measured(self) -> bool:
        return bool(self.pair["status"] == MEASURED)

    @property
    def ours(self) -> str:
        return str(self.pair["sides"][0]["side"])

    def rivals(self) -> list[str]:
        """Those that count come first, the fastest of them at the head."""
        def speed(side: Record) -> tuple[bool, float]:
            return not side["counts"], statistics.median(self.times(side["side"]))

        return [side["side"] for side in sorted(self.pair["sides"][1:], key=speed)]

    def times(self, side: str) -> list[float]:
        return [run["wall_s"] for run in self.runs[side]]

    def timing(self, side: str) -> str:
        times = self.times(side)
        return f"{statistics.median(times):.3f} s ({min(times):.3f}-{max(times):.3f})"

    def lines(self) -> list[list[str]]:
        """The lines of the pair."""
        state = f"slowfs {self.pair.get('latency', Pair.latency)}" if self.pair["state"] == SLOW else self.pair["state"]
        head = [f"{self.pair['work']} {self.pair['set']}, {state}", self.places]
        if not self.measured:
            return [[*head, f"{self.pair['status']}: {self.pair['reason']}"]]
        first = [*head, self.timing(self.ours)]
        lines = [self.line(rival, ["", "", ""] if at else first, is_first=at == 0) for at, rival in enumerate(self.rivals())]
        # Every rival may have been left out.
        return (lines or [self.alone(first)]) + self.also()

    def figures(self, figure: str, side: str) -> list[float]:
        """Another figure than the time, of each run: processor time of the command and its server, or bytes that were made."""
        if figure == "cpu_s":
            return [run["user_s"] + run["sys_s"] + run.get("served_s", 0.0) for run in self.runs[side]]
        return [float(run.get(figure, 0)) for run in self.runs[side]]

    def also(self) -> list[list[str]]:
        """The lines of goals that are not about the time."""
        lines = []
        for figure, rival, wanted in self.pair["goal"].get("also", ()):
            if rival in self.runs:
                ours, theirs = (self.figures(figure, side) for side in (self.ours, rival))
                ratio, unit = Ratio.of(ours, theirs), ("s CPU", 1) if figure == "cpu_s" else ("MB", 1e6)
                said = [f"{statistics.median(one) / unit[1]:.3f} {unit[0]}" for one in (ours, theirs)]
                result = "met" if ratio.value <= wanted else "not met"
                shown = f"{ratio.value:.3g} ({ratio.low:.3g}-{ratio.high:.3g})"
                lines.append(["", "", said[0], f"{rival} {said[1]}", shown, f"{wanted:g}", result, "", ""])
        return lines

    def speed(self) -> str:
        """GB a minute of each side, of pairs that read all."""
        if not self.measured or self.pair["work"] not in READING:
            return ""
        sides = [self.ours, *self.rivals()]
        size = self.runs[self.ours][0]["bytes"]
        speeds = {side: size / statistics.median(self.times(side)) * 60 / 1e9 for side in sides}
        said = ", ".join(f"{side} {speed:.2f}" for side, speed in speeds.items())
        return f"GB a minute, {self.pair['work']} {self.pair['set']}, {self.pair['state']}: {said}"

    def served(self) -> str:
        """Processor time and memory of each side's server, where there is one."""
        said = []
        for side in self.runs:
            if any("served_s" in run for run in self.runs[side]):
                seconds, peak = statistics.median(self.figures("served_s", side)), max(self.figures("server_peak_bytes", side))
                said.append(f"{side} {seconds:.2f} s, {peak / 1e6:.0f} MB")
        return f"servers, {self.pair['work']} {self.pair['set']}, {self.pair['state']}: {'; '.join(said)}" if said else ""

    def peak(self) -> int:
        """The most that our process held; of a mount, its server."""
        return max(int(run.get("server_peak_bytes") or run["max_rss_bytes"]) for run in self.runs[self.ours])

    def memory(self) -> str:
        limit = self.pair["goal"]["peak_bytes"]
        return f"{self.peak() / 1e6:.0f} MB" + (f" of {limit / 1e6:.0f}" if limit else "")

    def alone(self, head: list[str]) -> list[str]:
        """The line of a pair that has no rivals here."""
        limit = self.pair["goal"]["peak_bytes"]
        result = "" if limit is None else "not met: memory" if self.peak() > limit else "met"
        return [*head, "", "", "", result, self.memory(), str(len(self.runs[self.ours]))]

    def line(self, rival: str, head: list[str], is_first: bool) -> list[str]:
        """One rival beside us. Our memory is compared with its goal in the first line, and shown there with the rounds."""
        ratio = Ratio.of(self.times(self.ours), self.times(rival))
        shown = f"{ratio.value:.3g} ({ratio.low:.3g}-{ratio.high:.3g})"
        goal = self.pair["goal"]
        wanted = goal.get("against", {}).get(rival, goal["ratio"] if is_first else None)
        limit, peak = goal["peak_bytes"] if is_first else None, self.peak()
        missed = {
            "time": wanted is not None and ratio.value > wanted,
            "memory": limit is not None and peak > limit,
        }
        result = ", ".join(name for name, is_missed in missed.items() if is_missed)
        result = f"not met: {result}" if result else "met" if wanted is not None else ""
        if wanted is not None and ratio.low <= wanted <= ratio.high:
            result += ", unsure"
        memory = self.memory()
        count, planned = len(self.runs[self.ours]), self.pair.get("rounds")
        rounds = f"{count} of {planned}" if planned and planned > count else str(count)
        return [
            *head,
            f"{rival} {self.timing(rival)}",
            shown,
            "" if wanted is None else f"{wanted:g}",
            result,
            *([memory, rounds] if is_first else ["", ""]),
        ]


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


def report(records: list[Record], as_markdown: bool = False) -> str:
    """Facts about the machine, the table, and the notes."""
    found = outcomes(records)
    if not found:
        return "no pair was measured"
    lines = [HEADINGS] + [line for one in found for line in one.lines()]
    bullet = "- " if as_markdown else ""
    facts, said = ([bullet + text for text in texts] for texts in (heading(records[0]), notes(found, records[0])))
    return "\n\n".join(map("\n".join, (facts, [markdown(lines) if as_markdown else plain(lines)], said)))


def heading(machine: Record) -> list[str]:
    def in_words(place: Record) -> str:
        """A place of the machine, with that of its sets if they are elsewhere."""
        said, sets = f"{place['filesystem']} ({place['options']})", place.get("sets")
        return f"sets on {sets['filesystem']} ({sets['options']}), outputs on {said}" if sets else said

    memory = f"{int(machine['memory_bytes']) / 1e9:.1f} GB"
    places = "; ".join(map(in_words, machine["places"]))
    return [
        f"{machine['cpu']}, {machine['cores']} cores, {memory}, {machine['system']}, {machine['kernel']}, {places}",
        f"{machine['stook']}, {machine['time']}, seed {machine['seed']}",
        "; ".join(dict.fromkeys(machine["rivals"].values())),
    ]


def notes(found: list[Outcome], machine: Record) -> list[str]:
    """What a reader must know, then the warnings."""
    lines = ["median (least-greatest); ratio of medians (its 95 % interval); a goal is about the rival beside it"]
    if any("sync" in rival for outcome in found if outcome.measured for rival in outcome.rivals()):
        lines.append("tar does not make its volume durable, stook does; `tar, sync` is tar and then `sync -d`")
    lines += sorted({f"volumes of {v.pair['volume_size']}: {v.pair['pair']}" for v in found if v.pair["volume_size"]})
    lines += [f"not measured on {place}: {reason}" for place, reason in machine.get("skipped", {}).items()]
    lines += list(filter(None, [text for one in found for text in (one.speed(), one.served())]))
    left_out = {f"{side}: {why}" for one in found for side, why in one.pair.get("skipped", {}).items()}
    lines += [f"left out: {text}" for text in sorted(left_out)]
    lines += import_ratios(found) + waiting(found)
    average, cores = float(machine["load_average"]), int(machine["cores"])
    if average > cores:
        lines.append(f"warning: the load average was {average:.1f} on {cores} cores before the start")
    warned = [(one, text) for one in found for text in one.pair.get("warnings", [])]
    return lines + [f"warning: {one.pair['pair']} on {one.places}: {text}" for one, text in warned]


def import_ratios(found: list[Outcome]) -> list[str]:
    """How much longer an import takes than a hot one, beside what the slides say of their file system."""
    times = {one.pair["state"]: one for one in found if one.measured and one.pair["work"] == "import"}
    lines = []
    for names, slides in SLIDES.items():
        first, second = names.split(" / ")
        if first in times and second in times:
            pairs = [(side, *(times[state].times(side) for state in (first, second))) for side in times[first].runs]
            said = ", ".join(f"{side} {Ratio.of(one, other).value:.2f}" for side, one, other in pairs)
            lines.append(f"import, {names}: {said}; the slides: {slides}")
    return lines


def waiting(found: list[Outcome]) -> list[str]:
    """The share of the servers' time in requests that waits for a fetch, by side."""
    lines = []
    for one in (one for one in found if one.measured and one.pair["work"] in ("decode", "link-4")):
        for side, runs in one.runs.items():
            if shares := [share for run in runs if (share := waiting_share(run.get("timers"))) is not None]:
                share = statistics.median(shares)
                lines.append(f"waiting for a fetch, {one.pair['work']}, {side}: {share:.1%} of the time in requests; the slides: 95.8%")
    return lines


def waiting_share(timers: list[Record] | None) -> float | None:
    """Of what the timers hold of requests, the part that waits for a fetch; None if nothing is known of it."""
    requests = [root for root in timers or [] if root["name"].startswith("mount.")]
    waited, total = sum(map(waits, requests)), sum(root["total_ns"] for root in requests)
    return waited / total if waited else None


def waits(record: Record) -> int:
    """Nanoseconds below a scope that wait for a fetch, or fetch."""
    if record["name"] in ("wait for a fetch", "fetch"):
        return int(record["total_ns"])
    return sum(map(waits, record["children"]))


def timer_trees(records: list[Record]) -> dict[str, str]:
    """Where the server's time went in the last run of each side that is compared for it, by the side's name."""
    trees = {}
    for run in (one for one in records if one["kind"] == "run" and str(one["pair"]).startswith("decode-")):
        if "timers" not in run:
            continue
        text = [f"{'calls':>12} {'seconds':>10}  scope", *(line for root in run["timers"] for line in tree_lines(root, 0))]
        trees[str(run["side"])] = "\n".join(text) + "\n"
    return trees


def tree_lines(scope: Record, depth: int) -> list[str]:
    below = sorted(scope["children"], key=lambda child: -int(child["total_ns"]))
    line = f"{scope['calls']:>12,} {scope['total_ns'] / 1e9:>10.3f}  {'  ' * depth}{scope['name']}"
    return [line, *(text for child in below for text in tree_lines(child, depth + 1))]


def refusals(records: list[Record]) -> list[str]:
    """Names of the pairs that were refused."""
    return [str(record["pair"]) for record in records if record.get("status") == REFUSED]


def commands(records: list[Record]) -> str:
    """The command templates, each once."""
    pairs = [record for record in records if record["kind"] == "pair"]
    shown = {(side["side"], side["command"]) for pair in pairs for side in pair["sides"]}
    return "\n".join(f"{side:10} {command}" for side, command in sorted(shown))
