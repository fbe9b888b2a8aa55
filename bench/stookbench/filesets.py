"""The file sets: made once per place, checked, and used again while they hold.

Each `arc` is a beginning of the longest, made by `stook-fileset`: sizes of a log-normal law, median 1,785 B, sigma
1.667, cut to 21 B to 1.2 MiB, every second file text, 1 to 99 files to a directory. That law, which `make_arc.py` has
as well, has mean 7,131 and standard deviation 24,794. The others are made by `shapes`. What was really made is measured
here, apart from the maker. A set is used again when its marker agrees and as many files are there.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import shapes
from .launcher import PATIENCE_S
from .pair import Refused
from .place import Place

SEED = 7
SAMPLE = 200
PARTIAL = ".partial"
Marker = dict[str, Any]
# Inclusive, by the names of properties.
Bounds = dict[str, tuple[int, int]]
# What an `arc` of 100,000 files or more must keep to: the median and mean of the law within a tenth, the moments of the
# scratch comparison (mean 7,165, deviation 26,623) as near as the law comes.
ARC_BOUNDS: Bounds = {
    "mean_bytes": (6_500, 7_900),
    "deviation_bytes": (22_500, 27_500),
    "smallest_bytes": (21, 21),
    "median_bytes": (1_700, 1_870),
    "largest_bytes": (1_000_000, 1_258_291),
}
FLAT_BOUNDS: Bounds = {name: (shapes.FLAT_BYTES,) * 2 for name in ("smallest_bytes", "largest_bytes")}


@dataclass(frozen=True)
class Kind:
    """What a set is to be."""

    files: int
    law: str
    """A marker with another one is of another set."""
    bytes_per_file: int
    """What a file needs on the disk, in memory, or in a volume, whichever is most, for the space that must be free."""
    shape: Callable[[Path, int, int], None] | None = None
    """Makes it from a root, a number of files and a seed; `stook-fileset` if there is none."""
    bounds: Bounds = field(default_factory=dict)


def arc(files: int, bounds: Bounds | None = None) -> Kind:
    """8.7 kB a file in a volume, 8.9 kB on ext4, measured on arc100k."""
    return Kind(files, "arc, log-normal, version 1", 9_500, bounds=bounds or {})


def flat(files: int) -> Kind:
    """A block or page, an inode, a name."""
    bounds = {"directories": (1, 1), **FLAT_BOUNDS}
    return Kind(files, f"flat, {shapes.FLAT_BYTES} B, version 1", 5_000, shapes.flat, bounds)


APP_BOUNDS: Bounds = {"directories": (shapes.APP_DIRECTORIES,) * 2}
KINDS = {
    "arc2k": arc(2_000),
    "arc20k": arc(20_000),
    "arc100k": arc(100_000, ARC_BOUNDS),
    "arc": arc(1_290_284, ARC_BOUNDS),
    "flat100k": flat(100_000),
    "flat200k": flat(200_000),
    # 41,209 entries with the root and the other directories.
    "app41k": Kind(41_209 - shapes.APP_DIRECTORIES, "app, version 1", 7_000, shapes.app, APP_BOUNDS),
}


@dataclass(frozen=True)
class Properties:
    """What was found on the disk."""

    files: int
    directories: int
    bytes: int
    mean_bytes: float
    deviation_bytes: float
    smallest_bytes: int
    median_bytes: int
    largest_bytes: int

    @staticmethod
    def of(sizes: list[int], directories: int) -> Properties:
        ordered, count = sorted(sizes), len(sizes)
        mean = sum(ordered) / count
        deviation = math.sqrt(sum((size - mean) ** 2 for size in ordered) / count)
        return Properties(
            count,
            directories,
            sum(ordered),
            round(mean, 1),
            round(deviation, 1),
            ordered[0],
            ordered[count // 2],
            ordered[-1],
        )

    def violations(self, bounds: Bounds) -> list[str]:
        """Where a set does not keep to its bounds."""
        facts = asdict(self)
        return [
            f"{name} is {facts[name]:,}, not {low:,} to {high:,}"
            for name, (low, high) in bounds.items()
            if not low <= facts[name] <= high
        ]

    def __str__(self) -> str:
        return (
            f"{self.files:,} files in {self.directories:,} directories, {self.bytes / 1e6:,.0f} MB; sizes: mean "
            f"{self.mean_bytes:,.0f}, deviation {self.deviation_bytes:,.0f}, smallest {self.smallest_bytes:,}, median "
            f"{self.median_bytes:,}, largest {self.largest_bytes:,}"
        )


@dataclass(frozen=True)
class FileSet:
    """A set that is there, and some of its files, to ask the page cache about."""

    name: str
    path: Path
    properties: Properties
    sample: list[Path]


def ensure(place: Place, name: str, maker: Path) -> FileSet:
    """The set, made unless it is there."""
    path, marker = place.path("sets", name), place.path("sets", f"{name}.json")
    known = read_marker(marker)
    wanted = {"law": KINDS[name].law, "seed": SEED}
    if known is None or not wanted.items() <= known.items() or not holds(path, name, known):
        place.remove(marker)
        place.remove(path)
        known = make_whole(place, name, maker)
    properties = Properties(**known["properties"])
    return FileSet(name, path, properties, [path / relative for relative in known["sample"]])


def make_whole(place: Place, name: str, maker: Path) -> Marker:
    """Makes the set and its marker, each under another name first, so that a part of one is never taken for it."""
    partial, partial_marker = place.path("sets", name + PARTIAL), place.path("sets", f"{name}.json{PARTIAL}")
    place.remove(partial)
    known = make(partial, name, maker)
    partial_marker.write_text(json.dumps(known))
    partial.rename(place.path("sets", name))
    partial_marker.rename(place.path("sets", f"{name}.json"))
    return known


def make(path: Path, name: str, maker: Path) -> Marker:
    """Makes the set and returns its marker."""
    kind = KINDS[name]
    path.parent.mkdir(exist_ok=True)
    if kind.shape:
        kind.shape(path, kind.files, SEED)
    else:
        command = [str(maker), str(path), str(kind.files), str(SEED)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        if done.returncode != 0:
            raise Refused(f"the file set {name} could not be made: {done.stderr.strip()}")
    found = [(entry.path, entry.stat(follow_symlinks=False).st_size) for entry in files_below(path)]
    directories = sum(1 for _ in directories_below(path))
    properties = Properties.of([size for _, size in found], directories)
    if violations := properties.violations(kind.bounds):
        raise Refused(f"the file set {name} does not keep to its law: {'; '.join(violations)}")
    chosen = random.Random(SEED).sample(found, min(SAMPLE, len(found)))
    sample = [os.path.relpath(file, path) for file, _ in chosen]
    return {"law": kind.law, "seed": SEED, "properties": asdict(properties), "sample": sample}


def holds(path: Path, name: str, known: Marker) -> bool:
    """Whether as many files are there as were made."""
    made: int = known["properties"]["files"]
    return made == KINDS[name].files and path.is_dir() and sum(1 for _ in files_below(path)) == made


def read_marker(path: Path) -> Marker | None:
    try:
        marker: Marker = json.loads(path.read_text())
        return marker
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def remove_partial(place: Place) -> None:
    """Removes what an interrupted run left."""
    for path in place.path("sets").glob("*" + PARTIAL):
        place.remove(path)


def files_there(place: Place, name: str) -> int:
    """How many files of the set need no space any more."""
    return KINDS[name].files if place.path("sets", f"{name}.json").exists() else 0


def files_below(path: Path) -> Iterator[os.DirEntry[str]]:
    for directory in directories_below(path):
        with os.scandir(directory) as entries:
            yield from (entry for entry in entries if entry.is_file(follow_symlinks=False))


def directories_below(path: Path) -> Iterator[str]:
    """The tree's directories, its root included."""
    waiting = [str(path)]
    while waiting:
        yield (directory := waiting.pop())
        with os.scandir(directory) as entries:
            waiting.extend(entry.path for entry in entries if entry.is_dir(follow_symlinks=False))
