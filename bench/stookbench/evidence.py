"""What an outcome shows: the facts in which all sides of a pair must agree.

Checked by programs that stook is not made of: GNU tar, Python, and `stook-same-tree`, which has its own code. Facts are
small (counts, checksums), so one outcome at a time needs to be on the disk. Called once for each side, untimed, by way
of `run.py evidence NAME CASE`, which prints them; `stook bench pair` compares what is printed.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
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

    @staticmethod
    def parse(text: str) -> Case:
        values = json.loads(text)
        return Case(**{name: value if name == "files" else Path(value) for name, value in values.items()})


def show(name: str, case: Case) -> dict[str, object]:
    """The facts; Refused if there are none."""
    try:
        facts: dict[str, object] = globals()[name](case)
        return facts
    except (OSError, ValueError, KeyError, TypeError) as why:
        raise Refused(f"the outcome cannot be understood: {why}") from why


def walked(case: Case) -> dict[str, object]:
    """Lines of `SIZE MTIME PATH`, in any order; the root itself does not count."""
    prefix = re.compile(re.escape(f"{case.seen}".encode()) + b"/?")
    with case.stdout.open("rb") as lines:
        entries = sorted(filter(None, (canonical_entry(line.rstrip(b"\n"), prefix) for line in lines)))
    return {"entries": len(entries), "sha256": digest(entries)}


def canonical_entry(line: bytes, prefix: re.Pattern[bytes]) -> bytes | None:
    """The line with nine digits of the second and a path relative to the tree; None for the tree itself."""
    try:
        size, time, path = line.split(b" ", 2)
    except ValueError:
        raise Refused(f"a line of the walk is not `SIZE MTIME PATH`: {line[:80]!r}") from None
    match = prefix.match(path)
    path = path[match.end() :] if match else path.removeprefix(b"./")
    if path in (b"", b"."):
        return None
    seconds, _, fraction = time.partition(b".")
    return b"%s %s.%s %s" % (size, seconds, fraction[:9].ljust(9, b"0"), path)


def named(case: Case) -> dict[str, object]:
    """Lines of paths, in any order; the root itself and slashes behind directories do not count."""
    prefix = re.compile(re.escape(f"{case.seen}".encode()) + b"/?")
    with case.stdout.open("rb") as lines:
        names = canonical_names(prefix.sub(b"", line, count=1) for line in lines)
    return {"entries": len(names), "sha256": digest(names)}


def summarised(case: Case) -> dict[str, object]:
    """Regular files and their bytes, as `stook walk --summary --json` says last."""
    lines = case.stdout.read_text().splitlines() or ["{}"]
    summary = json.loads(lines[-1])
    return {"files": int(summary["files"]), "bytes": int(summary["bytes"])}


def tallied(case: Case) -> dict[str, object]:
    """The same from a line that begins with them; its other figures may be rounded otherwise."""
    files, total, *_ = case.stdout.read_text().split()
    return {"files": int(files), "bytes": int(total)}


def walk_count(case: Case) -> dict[str, object]:
    """How many entries a walk found, with nothing archived: what an update without changes must agree with."""
    return {"entries": walked(case)["entries"], "archived": 0}


def updated(case: Case) -> dict[str, object]:
    """What `stook update --json` says it did."""
    summary = json_summary(case.stdout)
    return {"entries": summary["unchanged"], "archived": summary["members"]}


def packed(case: Case) -> dict[str, object]:
    """The names in the volumes of `out`, whose every member GNU tar finds equal to the source."""
    volumes = sorted(case.out.rglob("*.tar"))
    if not volumes:
        raise Refused("no volume was written")
    names: list[bytes] = []
    for volume in volumes:
        run([case.tar, "--compare", "-f", volume, "-C", case.tree], "the volume is not equal to the source")
        names += run([case.tar, "-tf", volume], "the volume cannot be listed").splitlines()
    members = canonical_names(names)
    return {"members": len(members), "sha256": digest(members)}


def unpacked(case: Case) -> dict[str, object]:
    """That the tree at `target` is the source: bytes, modes, owners, times, links."""
    return {"entries": same_entries(case, "the extracted tree is not the source")}


def copied(case: Case) -> dict[str, object]:
    """The same of a copy."""
    return {"entries": same_entries(case, "the copy is not the source")}


def copied_without_times(case: Case) -> dict[str, object]:
    """The same for a program that does not keep times, which does less than the others."""
    options = ["--mtime-tolerance-ns", ANY_TIME]
    return {"entries": same_entries(case, "the copy is not the source", *options)}


def same_entries(case: Case, complaint: str, *options: object) -> int:
    said = run([case.same_tree, case.tree, case.target, *options], complaint)
    return int(said.removeprefix(b"equal: ").split()[0])


def gone(case: Case) -> dict[str, object]:
    """That nothing is left at `target`, and that the set, from which it was copied, still has all its files."""
    if os.path.lexists(case.target):
        raise Refused("the tree is still there")
    kept = sum(len(files) for _, _, files in os.walk(case.tree))
    if kept != case.files:
        raise Refused(f"of the file set {kept:,} files are left, of {case.files:,}")
    return {"left": 0, "kept": kept}


def checked(case: Case) -> dict[str, object]:
    """How many members `stook check --json` found whole, and what the index says of the volume."""
    summary = json_summary(case.stdout)
    if summary["damages"]:
        raise Refused(f"check found {summary['damages']} damages")
    with sqlite3.connect(f"file:{case.archive}/index.db?mode=ro", uri=True) as index:
        (md5,) = index.execute("SELECT md5 FROM tars WHERE name = ?", (case.volume.name,)).fetchone()
    return {"members": summary["members"], "md5": md5}


def summed(case: Case) -> dict[str, object]:
    """What md5sum printed, and how many members GNU tar sees in the volume."""
    names = run([case.tar, "-tf", case.volume], "the volume cannot be listed").splitlines()
    return {"members": len(canonical_names(names)), "md5": case.stdout.read_text().split()[0]}


def canonical_names(names: Iterable[bytes]) -> list[bytes]:
    """Sorted, without `./`, slashes behind, and the root."""
    return sorted(filter(None, (name.rstrip(b"\n").removeprefix(b"./").rstrip(b"/") for name in names)))


def digest(lines: list[bytes]) -> str:
    return hashlib.sha256(b"\n".join(lines)).hexdigest()


def json_summary(path: Path) -> dict[str, Any]:
    """The last object of type `summary` that stook printed."""
    for line in reversed(path.read_text().splitlines()):
        found: dict[str, Any] = json.loads(line)
        if found.get("type") == "summary":
            return found
    raise Refused("stook printed no summary")


def run(command: list[object], complaint: str) -> bytes:
    """The output of a program that compares; Refused with the complaint when it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, capture_output=True, env=ENVIRONMENT, check=False)
    if done.returncode != 0:
        lines = (done.stdout + done.stderr).decode(errors="replace").splitlines()
        raise Refused(f"{complaint}: {lines[0] if lines else f'status {done.returncode}'}")
    return done.stdout
