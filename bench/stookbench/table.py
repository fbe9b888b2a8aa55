"""Tables from raw records: medians with least and greatest, ratios with their interval, goals, doubts.

A pair's first line compares stook with the fastest rival that counts; then come the other rivals. A goal stands beside
the rival that it names, or else in the first line. Pairs without a result say why.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .doubts import Record, doubts, load
from .pair import SLOW
from .records import MEASURED, REFUSED
from .slow import LATENCY
from .stats import Ratio, Spread, ratio_of_medians

HEADINGS = ["work", "on", "stook", "rival", "ratio", "goal", "result", "peak memory", "rounds"]


@dataclass(frozen=True)
class Aim:
    """What is to be judged in one line of a pair: a ratio, and whether we took more memory than the goal allows."""

    ratio: float | None
    is_over: bool


@dataclass(frozen=True)
class Verdict:
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

    def spread(self, side: str) -> Spread:
        return Spread.of(self.times(side))

    def ratio(self, side: str) -> Ratio:
        return ratio_of_medians(self.times(self.ours), self.times(side))

    @property
    def ours(self) -> str:
        return str(self.pair["sides"][0]["side"])

    def rivals(self) -> list[str]:
        """Those that count come first, the fastest of them at the head."""
        sides = self.pair["sides"][1:]
        ordered = sorted(sides, key=lambda side: (not side["counts"], self.spread(side["side"]).median))
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


def verdicts(records: Iterable[Record]) -> list[Verdict]:
    """The pairs in the order they were measured, each with its runs. Runs of refused pairs count for nothing."""
    runs: dict[tuple[object, object], dict[str, list[Record]]] = {}
    found = []
    for record in records:
        key = (record.get("place"), record.get("pair"))
        if record["kind"] == "run":
            runs.setdefault(key, {}).setdefault(record["side"], []).append(record)
        elif record["kind"] == "pair":
            sides = runs.pop(key, {})
            found.append(Verdict(record, sides if record["status"] == MEASURED else {}))
    return found


def rows(verdict: Verdict) -> list[list[str]]:
    """The lines of one pair."""
    pair = verdict.pair
    state = f"slowfs {LATENCY}" if pair["state"] == SLOW else pair["state"]
    work = f"{pair['work']} {pair['set']}, {state}"
    if not verdict.measured:
        return [[work, verdict.places, f"{pair['status']}: {pair['reason']}"]]
    lines = []
    for position, rival in enumerate(verdict.rivals()):
        ratio = verdict.ratio(rival)
        head = [work, verdict.places, timing(verdict.spread(verdict.ours))] if position == 0 else ["", "", ""]
        goal = verdict.goal_against(rival, is_first=position == 0)
        judged = [*judge(ratio, goal), *(facts_of_ours(verdict) if position == 0 else ["", ""])]
        theirs = f"{rival} {timing(verdict.spread(rival))}"
        lines.append([*head, theirs, f"{ratio.value:.3g} ({ratio.low:.3g}-{ratio.high:.3g})", *judged])
    return lines


def timing(spread: Spread) -> str:
    return f"{spread.median:.3f} s ({spread.least:.3f}-{spread.greatest:.3f})"


def judge(ratio: Ratio, goal: Aim) -> list[str]:
    """A goal and whether it is met."""
    if goal.ratio is None:
        return ["", "not met: memory" if goal.is_over else ""]
    missed = [name for name, bad in (("time", ratio.value > goal.ratio), ("memory", goal.is_over)) if bad]
    result = f"not met: {', '.join(missed)}" if missed else "met"
    return [f"{goal.ratio:g}", result + (", unsure" if ratio.contains(goal.ratio) else "")]


def facts_of_ours(verdict: Verdict) -> list[str]:
    """Our peak memory with its goal if it has one, and the rounds."""
    limit = verdict.pair["goal"]["peak_bytes"]
    return [f"{verdict.peak_bytes / 1e6:.0f} MB" + (f" of {limit / 1e6:.0f}" if limit else ""), verdict.rounds]


def call_lines(counted: list[Record]) -> list[list[str]]:
    """A column for each program that was counted, a row for each call that one made on the tree."""
    measured = [record for record in counted if record["status"] == MEASURED]
    names: Counter[str] = sum((Counter(record["on_tree"]) for record in measured), Counter())
    first = counted[0]
    entries = f"{first['files'] + first['directories']:,} entries, {first['directories']:,} of them directories"
    rows = [[f"calls on {first['set']} ({entries})", *(str(record["side"]) for record in measured)]]
    rows += [[name, *(f"{record['on_tree'].get(name, 0):,}" for record in measured)] for name, _ in names.most_common()]
    rows.append(["all on the tree", *(f"{on_tree(record):,}" for record in measured)])
    rows.append(["goal", *map(judge_calls, measured)])
    rows.append(["all others", *(f"{others(record):,}" for record in measured)])
    return rows


def on_tree(record: Record) -> int:
    return sum(record["on_tree"].values())


def others(record: Record) -> int:
    """Calls for memory, threads and other files, without what an empty directory takes."""
    return sum((Counter(record["elsewhere"]) - Counter(record["empty_elsewhere"])).values())


def judge_calls(record: Record) -> str:
    goal = record["goal"]
    return f"{goal:,}: {'met' if on_tree(record) <= goal else 'not met'}" if goal else ""


def call_notes(counted: list[Record]) -> list[str]:
    """What a reader must know, and what could not be counted."""
    said = [
        "counted by strace; on the tree: calls that name its root or what is below, by path or descriptor",
        "all others: for memory, threads and other files, without those of a run on an empty directory (start-up)",
    ]
    refused = [record for record in counted if record["status"] == REFUSED]
    return said + [f"{record['side']}: refused: {record['reason']}" for record in refused]


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


def notes(found: list[Verdict], machine: Record) -> list[str]:
    """What a reader must know, then what is doubtful."""
    lines = ["median (least-greatest); ratio of medians (its 95 % interval); a goal is about the rival beside it"]
    if any("sync" in rival for verdict in found if verdict.measured for rival in verdict.rivals()):
        lines.append("tar does not make its volume durable, stook does; `tar, sync` is tar and then `sync -d`")
    lines += sorted({f"volumes of {v.pair['volume_size']}: {v.pair['pair']}" for v in found if v.pair["volume_size"]})
    doubtful = [load(machine), *(doubts_of(verdict, int(machine["cores"])) for verdict in found)]
    return lines + [f"doubtful: {doubt}" for doubt in doubtful if doubt]


def doubts_of(verdict: Verdict, cores: int) -> str | None:
    """All doubts about a pair, in one line."""
    said = [f"{side} {doubt}" for side, runs in verdict.runs.items() for doubt in doubts(runs, cores)]
    return f"{verdict.key}: {'; '.join(said)}" if said else None


def report(records: list[Record], as_markdown: bool = False) -> str:
    """Facts about the machine, the table, and the notes."""
    bullet = "- " if as_markdown else ""
    parts = [[bullet + fact for fact in heading(records[0])]]
    for lines, said in tables(records):
        parts += [[markdown(lines) if as_markdown else plain(lines)], [bullet + note for note in said]]
    return "\n\n".join("\n".join(part) for part in parts) if len(parts) > 1 else "no pair was measured"


def tables(records: list[Record]) -> Iterator[tuple[list[list[str]], list[str]]]:
    """Lines and notes of each table that there is."""
    if found := verdicts(records):
        yield [HEADINGS] + [row for verdict in found for row in rows(verdict)], notes(found, records[0])
    if counted := [record for record in records if record["kind"] == "syscalls"]:
        yield call_lines(counted), call_notes(counted)


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
    """Names of pairs, and of programs whose calls could not be counted."""
    return [str(record.get("pair") or record["side"]) for record in records if record.get("status") == REFUSED]


def commands(records: list[Record]) -> str:
    """The command templates, each once."""
    pairs = [record for record in records if record["kind"] == "pair"]
    shown = {(side["side"], side["command"]) for pair in pairs for side in pair["sides"]}
    shown |= {(record["side"], record["command"]) for record in records if record["kind"] == "syscalls"}
    return "\n".join(f"{side:10} {command}" for side, command in sorted(shown))
