"""What a pair is: the same work done by stook and by its rivals, and when they count as having done the same.

A pair is a value. Commands are templates: they are split into words as a shell would, then `{names}` are filled in;
`{{` and `}}` stand for braces. A command names the programs it needs (`{bfs}`), so what is missing is known before
anything runs. This file holds no pairs (`pairs`) and runs nothing (`measure`).
"""

from __future__ import annotations

import shlex
import string
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

# Names in templates that are no rivals: our program, the inputs, and where outputs go.
PLACES = {
    "stook": "the program under test",
    "tree": "the file set",
    "archive": "an archive of the file set, made by stook beforehand",
    "volume": "the volume of that archive",
    "volume_size": "the size at which the pair begins a new volume",
    "out": "an empty directory, new for every run",
    "target": "a path below `out`, or on slowfs, that does not exist yet",
}

HOT, COLD, SLOW = "hot", "cold", "slow"


class Refused(Exception):
    """A pair that must not be reported: sides differ, a command failed, or a state could not be proved."""


@dataclass(frozen=True)
class Case:
    """Where the inputs of a pair really are, also while it sees them through slowfs, and the judges of outcomes."""

    tree: Path
    archive: Path
    volume: Path
    tar: Path
    same_tree: Path
    files: int
    """How many files the set has."""


@dataclass(frozen=True)
class Outcome:
    """What one run of one side left behind."""

    tree: Path
    """The tree as the command saw it."""
    out: Path
    target: Path
    stdout: Path


# What an outcome shows, as facts that must be the same for all sides of a pair. Raises Refused.
Evidence = Callable[[Case, Outcome], dict[str, object]]


@dataclass(frozen=True)
class Goal:
    """At most this ratio of our median to that of the fastest rival that counts, and at most this much memory."""

    ratio: float | None = None
    peak_bytes: int | None = None
    against: dict[str, float] = field(default_factory=dict)
    """The same ratio to a rival of that name, which need not count."""

    def __str__(self) -> str:
        ratios = [f"{self.ratio:g}"] if self.ratio else []
        return ", ".join(ratios + [f"{ratio:g} of {rival}" for rival, ratio in self.against.items()])


@dataclass(frozen=True)
class Side:
    """One program's way to do the work."""

    name: str
    command: str
    evidence: Evidence | None = None
    """Instead of the pair's, where sides show the same facts in different ways."""
    before: str = ""
    """Run before every run, untimed: makes what the command consumes, or mounts. It sees `target` without slowfs."""
    after: str = ""
    """Run after every run, untimed, also after one that failed; without slowfs like `before`."""
    counts: bool = True
    """Whether it may be the fastest rival; otherwise it is only reported, or has a goal of its own."""


@dataclass(frozen=True)
class Pair:
    """Work, a file set, a state of the caches; our side, the rivals; what both must show."""

    work: str
    ours: Side
    rivals: tuple[Side, ...]
    evidence: Evidence
    reads: str
    """What is hot or cold: `names` (directories and inodes), `contents` (files too), `volume`, or `target` (directories
    and inodes of a copy of the set that `before` makes there)."""
    writes: str = "nothing"
    """What `before` and a run leave: `nothing`, `volume` or `tree`; for the space that must be free."""
    slow: str = "tree"
    """What lies on slowfs in the state `slow`: `tree` or `target`."""
    volume_size: str = ""
    goals: dict[str, Goal] = field(default_factory=dict)
    """By state."""
    rounds: int | None = None
    file_set: str = ""
    state: str = HOT

    @property
    def name(self) -> str:
        return f"{self.work}-{self.file_set}-{self.state}"

    @property
    def sides(self) -> tuple[Side, ...]:
        return (self.ours, *self.rivals)

    @property
    def goal(self) -> Goal:
        return self.goals.get(self.state, Goal())

    def on(self, file_set: str, state: str = HOT, **changes: Any) -> Pair:
        """The same pair over another file set or in another state."""
        return replace(self, file_set=file_set, state=state, **changes)

    def names(self) -> set[str]:
        """All names that its templates need."""
        texts = [text for side in self.sides for text in (side.command, side.before, side.after)]
        return {name for text in texts for name in template_names(text)}

    @property
    def is_shown_first(self) -> bool:
        """Whether outcomes are looked at before the first timed round, or after it, as where runs take long."""
        return self.state != SLOW and self.writes != "tree"

    def needs_archive(self) -> bool:
        return bool({"archive", "volume"} & self.names())

    def evidence_of(self, side: Side) -> Evidence:
        return side.evidence or self.evidence


def template_names(template: str) -> set[str]:
    """The names that a template needs."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def words(template: str, values: dict[str, str]) -> list[str]:
    """The words of a command. A value with blanks stays one word."""
    return [word.format_map(values) for word in shlex.split(template)]
