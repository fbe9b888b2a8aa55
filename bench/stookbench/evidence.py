"""What an outcome shows: the facts in which all sides of a pair must agree.

Checked by programs that stook is not made of: GNU tar, Python, and `stook-same-tree`, which has its own code. Facts are
small (counts, checksums), so one outcome at a time needs to be on the disk. Called once for each side, untimed, by way
of `run.py evidence NAME CASE`, which prints them; `stook bench pair` compares what is printed.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .pair import Refused

# Of `stook-same-tree`: 292 years.
ANY_TIME = 2**63 - 1
ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
Facts = dict[str, object]


@dataclass(frozen=True)
class Case:
    """Where inputs and outcomes are, and the programs that compare them."""

    tree: Path
    """The set where it really is, also while a side sees it through slowfs."""
    seen: Path
    """The same as the command saw it."""
    archive: Path
    volume: Path
    out: Path
    target: Path
    stdout: Path
    tar: Path
    same_tree: Path
    files: int
    """How many files the set has."""
    sample: tuple[str, ...] = ()
    """Some files, as paths below the set."""

    @staticmethod
    def parse(text: str) -> Case:
        values = json.loads(text)
        return Case(**{name: value if name in ("files", "sample") else Path(value) for name, value in values.items()})

    def lines(self) -> Iterable[bytes]:
        """What the command printed."""
        with self.stdout.open("rb") as lines:
            yield from (line.rstrip(b"\n") for line in lines)


def show(name: str, case: Case) -> Facts:
    """The facts; Refused if there are none."""
    try:
        facts: Facts = globals()[name](case)
        return facts
    except (OSError, ValueError, KeyError, TypeError) as why:
        raise Refused(f"the outcome cannot be understood: {why}") from why


def walked(case: Case) -> Facts:
    """Lines of `SIZE MTIME PATH`, in any order; the root itself does not count."""
    entries = []
    for line in case.lines():
        try:
            size, time, path = line.split(b" ", 2)
        except ValueError:
            raise Refused(f"a line of the walk is not `SIZE MTIME PATH`: {line[:80]!r}") from None
        # Nine digits of the second.
        seconds, _, fraction = time.partition(b".")
        if path := below(path, case.seen):
            entries.append(b"%s %s.%s %s" % (size, seconds, fraction[:9].ljust(9, b"0"), path))
    return digest("entries", entries)


def walked_files(case: Case) -> Facts:
    """Lines of `SIZE MTIME PATH` of a mount: paths alone, as rivals show other times and sizes of directories."""
    return digest("entries", (below(line.split(b" ", 2)[2], case.seen) for line in case.lines()))


def sampled(case: Case) -> Facts:
    """The content of some files as the command saw them, which must be that of the set."""
    for file in case.sample:
        if (case.seen / file).read_bytes() != (case.tree / file).read_bytes():
            raise Refused(f"`{file}` is not what it is in the set")
    return {"equal": len(case.sample)}


def nothing(_case: Case) -> Facts:
    """Where the command's own success says enough."""
    return {}


def named(case: Case) -> Facts:
    """Lines of paths, in any order; the root itself and slashes behind directories do not count."""
    return digest("entries", (below(line, case.seen) for line in case.lines()))


def below(path: bytes, tree: Path | None = None) -> bytes:
    """A path relative to the tree, without `./` and slashes behind; nothing for the tree itself."""
    path = path.removeprefix(f"{tree or ''}".encode()).removeprefix(b"/").removeprefix(b"./").rstrip(b"/")
    return b"" if path == b"." else path


def digest(what: str, names: Iterable[bytes]) -> Facts:
    """How many there are, and the checksum of the sorted ones. The tree itself, which has no name, does not count."""
    found = sorted(filter(None, names))
    return {what: len(found), "sha256": hashlib.sha256(b"\n".join(found)).hexdigest()}


def summarised(case: Case) -> Facts:
    """Regular files and their bytes, as `stook walk --summary --json` says last."""
    *_, last = case.lines()
    summary = json.loads(last)
    return {"files": int(summary["files"]), "bytes": int(summary["bytes"])}


def counted(case: Case) -> Facts:
    """The same from a line that begins with them; its other figures may be rounded otherwise."""
    files, total, *_ = case.stdout.read_text().split()
    return {"files": int(files), "bytes": int(total)}


def walk_count(case: Case) -> Facts:
    """How many entries a walk found, with nothing archived: what an update without changes must agree with."""
    return {"entries": walked(case)["entries"], "archived": 0}


def updated(case: Case) -> Facts:
    """What `stook update --json` says it did."""
    summary = json_summary(case)
    return {"entries": summary["unchanged"], "archived": summary["members"]}


def packed(case: Case) -> Facts:
    """The names in the volumes of `out`, whose every member GNU tar finds equal to the source."""
    return packed_from(case, case.tree)


def packed_as_seen(case: Case) -> Facts:
    """The same, the source as the command saw it: through a mount that has times of whole seconds."""
    return packed_from(case, case.seen)


def packed_from(case: Case, tree: Path) -> Facts:
    volumes = sorted(case.out.rglob("*.tar"))
    if not volumes:
        raise Refused("no volume was written")
    for volume in volumes:
        run([case.tar, "--compare", "-f", volume, "-C", tree], "the volume is not equal to the source")
    return digest("members", (name for volume in volumes for name in members(case, volume)))


def members(case: Case, volume: Path) -> list[bytes]:
    """The names that GNU tar sees in a volume, without that of the tree itself."""
    names = run([case.tar, "-tf", volume], "the volume cannot be listed").splitlines()
    return list(filter(None, map(below, names)))


def unpacked(case: Case) -> Facts:
    """That the tree at `target` is the source: bytes, modes, owners, times, links."""
    return same_entries(case, "the extracted tree is not the source")


def copied(case: Case) -> Facts:
    """The same of a copy."""
    return same_entries(case, "the copy is not the source")


def copied_without_times(case: Case) -> Facts:
    """The same for a program that does not keep times, which does less than the others."""
    return same_entries(case, "the copy is not the source", "--mtime-tolerance-ns", ANY_TIME)


def same_entries(case: Case, complaint: str, *options: object) -> Facts:
    said = run([case.same_tree, case.tree, case.target, *options], complaint)
    return {"entries": int(said.removeprefix(b"equal: ").split()[0])}


def gone(case: Case) -> Facts:
    """That nothing is left at `target`, and that the set, from which it was copied, still has all its files."""
    if os.path.lexists(case.target):
        raise Refused("the tree is still there")
    kept = sum(len(files) for _, _, files in os.walk(case.tree))
    if kept != case.files:
        raise Refused(f"of the file set {kept:,} files are left, of {case.files:,}")
    return {"left": 0, "kept": kept}


def checked(case: Case) -> Facts:
    """How many members `stook check --json` found whole, and what the index says of the volume."""
    summary = json_summary(case)
    if summary["damages"]:
        raise Refused(f"check found {summary['damages']} damages")
    with sqlite3.connect(f"file:{case.archive}/index.db?mode=ro", uri=True) as index:
        (md5,) = index.execute("SELECT md5 FROM tars WHERE name = ?", (case.volume.name,)).fetchone()
    return {"members": summary["members"], "md5": md5}


def summed(case: Case) -> Facts:
    """What md5sum printed, and how many members GNU tar sees in the volume."""
    return {"members": len(members(case, case.volume)), "md5": case.stdout.read_text().split()[0]}


def json_summary(case: Case) -> dict[str, Any]:
    """The last object of type `summary` that stook printed."""
    summaries = [line for line in map(json.loads, case.lines()) if line.get("type") == "summary"]
    if not summaries:
        raise Refused("stook printed no summary")
    return dict(summaries[-1])


def run(command: list[object], complaint: str) -> bytes:
    """The output of a program that compares; Refused with the complaint when it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, env=ENVIRONMENT, check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()
        raise Refused(f"{complaint}: {lines[0] if lines else f'status {done.returncode}'}")
    return done.stdout
