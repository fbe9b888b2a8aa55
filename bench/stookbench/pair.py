"""What a pair is: the same work done by stook and by its rivals, and when they count as having done the same.

A pair is a value. Commands are templates: they are split into words as a shell would, then `{names}` are filled in;
`{{` and `}}` stand for braces. A command names the programs it needs (`{bfs}`), so what is missing is known before
anything runs. This file holds no pairs (`pairs`) and runs nothing (`measure`).
"""

from __future__ import annotations

import shlex
import string
from dataclasses import dataclass, field, replace
from typing import Any

# Names in templates that are no rivals: the program under test; the file set; an archive of it, made beforehand, and its
# volume; the size at which the pair begins a new volume; an empty directory, new for every run; a path below that, or on
# slowfs, that does not exist yet.
PLACES = {"stook", "tree", "archive", "volume", "volume_size", "out", "target"}
HOT, COLD, SLOW, SSHFS = "hot", "cold", "slow", "sshfs"
# Of a mount: nothing in memory, but the block cache on the disk is full.
WARM = "warm"
# Those in which a side of the work is seen through a mount.
MOUNTED = (SLOW, SSHFS)


class Refused(Exception):
    """A pair that must not be reported: sides differ, a command failed, or a state could not be proved."""


@dataclass(frozen=True)
class Goal:
    """What our median is to be, as a multiple of a rival's, and how much memory we may take."""

    ratio: float | None = None
    """Of the fastest rival that counts."""
    peak_bytes: int | None = None
    against: dict[str, float] = field(default_factory=dict)
    """Of these rivals."""
    also: tuple[tuple[str, str, float], ...] = ()
    """Of other figures than the wall time, `cpu_s` or `made_bytes`: the figure, the rival, and the multiple."""


@dataclass(frozen=True)
class Side:
    """One program's way to do the work."""

    name: str
    command: str
    evidence: str = ""
    """Instead of the pair's, where sides show the same facts in different ways: a function of `evidence`."""
    before: str = ""
    """Run before every run, untimed and outside slowfs: makes what the command consumes."""
    counts: bool = True
    """Whether it may be the fastest rival; otherwise it is only reported, or has a goal of its own."""
    view: str = "tree"
    """Of a pair of mounts: through what it sees the set, one of `mounts.VIEWS`."""
    options: str = ""
    """More options of that mount."""


@dataclass(frozen=True)
class Pair:
    """Work, a file set, a state of the caches; our side, the rivals; what both must show."""

    work: str
    ours: Side
    rivals: tuple[Side, ...]
    evidence: str
    reads: str
    """What is hot or cold: `names` (directories and inodes), `contents` (files too), `volume`, or `target` (directories
    and inodes of a copy of the set that `before` makes there)."""
    writes: str = "nothing"
    """What `before` and a run leave: `nothing`, `volume` or `tree`; for the space that must be free."""
    slow: str = "tree"
    """What lies on slowfs or sshfs in these states: `tree` or `target`."""
    latency: str = "1ms"
    """Of every request to slowfs."""
    ttl: str = "1s"
    """How long the kernel may keep names and attributes of slowfs."""
    volume_size: str = ""
    goals: dict[str, Goal] = field(default_factory=dict)
    """By state."""
    rounds: int | None = None
    file_set: str = ""
    state: str = HOT

    @property
    def name(self) -> str:
        latency = f"-{self.latency}" if self.state == SLOW and self.latency != Pair.latency else ""
        return f"{self.work}-{self.file_set}-{self.state}{latency}"

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
        """All names that its templates need, and the programs that its state needs."""
        used = {name for side in self.sides for text in (side.command, side.before) for name in template_names(text)}
        return used | {"sshfs", "sshd"} if self.state == SSHFS else used

    @property
    def needs_archive(self) -> bool:
        return bool({"archive", "volume"} & self.names())


def template_names(template: str) -> set[str]:
    """The names that a template needs."""
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def words(template: str, values: dict[str, str]) -> list[str]:
    """The words of a command. A value with blanks stays one word."""
    return [word.format_map(values) for word in shlex.split(template)]
