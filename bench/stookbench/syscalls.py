"""How many system calls programs make to remove a tree, counted in what strace prints.

A call is on the tree if it names the tree or anything below it, by path or by descriptor (strace says what descriptors
stand for); so start-up is not among them, the calls on the root are, and what a program asks of /proc meanwhile is not.
All other calls are counted as well, also those of a run on an empty directory, so that start-up can be taken off them.
Nothing is timed here: strace makes a call many times slower.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from .measure import FAILURES, Bench, Trial, in_words, is_interruption
from .pair import Pair, Side
from .pairs import REMOVE
from .records import MEASURED, REFUSED, timestamp
from .rivals import say

PAIR = REMOVE.on("app41k")
# 36,346 files and 4,863 directories, each of these opened, read twice, closed and removed, are 60,661.
GOAL = 60_700
CALL = re.compile(r"^(?:\d+ +)?([a-z_0-9]+)\(")


@dataclass
class Calls:
    """How often each call was made."""

    on_tree: Counter[str] = field(default_factory=Counter)
    elsewhere: Counter[str] = field(default_factory=Counter)


def calls(log: Iterable[str], tree: Path) -> Calls:
    """What is in a log of `strace -f -y`. A call that another thread interrupts is there twice, and begins once."""
    found = Calls()
    # As the program was told, and as the kernel knows it.
    parents = "|".join({re.escape(f"{parent}") for parent in (tree.parent, tree.parent.resolve())})
    name = re.escape(tree.name)
    # The root may be named from its parent; what is removed already is ` (deleted)` for some versions of strace.
    named = re.compile(rf'(?:{parents})(?:/{name}(?:["/>]| \(deleted\))|>, "{name}")')
    for line in log:
        if match := CALL.match(line):
            # The name of the tree in the command line is no call on it.
            is_on_tree = match[1] != "execve" and named.search(line) is not None
            (found.on_tree if is_on_tree else found.elsewhere)[match[1]] += 1
    return found


def count(bench: Bench, pair: Pair = PAIR) -> None:
    """Removes a tree, and an empty directory, with every program, and records the calls."""
    missing = bench.rivals.missing.get("strace")
    if hindrance := f"strace {missing}" if missing else bench.hindrance(pair):
        raise SystemExit(f"error: the calls cannot be counted: {hindrance}")
    trial = Trial(bench, pair)
    for side in pair.sides:
        say(f"{side.name} removes {pair.file_set} under strace")
        facts: dict[str, object] = {"status": MEASURED, "reason": None}
        try:
            whole, empty = traced(trial, side), traced(trial, replace(side, before="mkdir {target}"))
            facts |= {"on_tree": whole.on_tree, "elsewhere": whole.elsewhere}
            facts |= {"empty_on_tree": empty.on_tree, "empty_elsewhere": empty.elsewhere}
        except FAILURES as why:
            if is_interruption(why):
                raise KeyboardInterrupt from why
            facts |= {"status": REFUSED, "reason": bench.scrub(in_words(why))}
            say(f"{side.name}: {facts['reason']}")
        bench.results.add(
            "syscalls",
            place=bench.place.name,
            set=pair.file_set,
            side=side.name,
            command=side.command,
            goal=GOAL if side is pair.ours else None,
            files=trial.tree.properties.files,
            directories=trial.tree.properties.directories,
            **facts,
            time=timestamp(),
        )


def traced(trial: Trial, side: Side) -> Calls:
    """One run under strace; Refused unless the tree is gone."""
    strace, log = trial.bench.rivals.found["strace"], trial.place.path("out", "strace")
    with trial.stage(side) as stage:
        # By way of the stage's command, so that the launcher ends all of it if it takes too long.
        stage.prefix = [f"{strace.path}", "-f", "-y", "-o", f"{log}", "--"]
        trial.execute(side, stage, stage.outcome.stdout)
        trial.look_at(side, stage.outcome)
        with log.open(errors="surrogateescape") as lines:
            return calls(lines, stage.outcome.target)
