"""The file sets: made once per place by `stook bench fileset`, and used again while they hold.

Each `arc` is a beginning of the longest; `flat` is one directory. A set is used again when its marker agrees and as many
files are there.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .pair import Refused
from .place import Place

SEED, VERSION = 7, 2
SAMPLE = 200
PARTIAL = ".partial"
NAMES = f"{Path(__file__).parent.parent / 'sets/names.toml'}"
FLAT = f"{Path(__file__).parent.parent / 'sets/flat.toml'}"


@dataclass(frozen=True)
class Kind:
    """What a set is to be."""

    files: int
    spec: str = "arc"
    bytes_per_file: int = 9_500
    """What a file needs on the disk, in memory, or in a volume, whichever is most, for the space that must be free.

    8.7 kB a file of arc in a volume, 8.9 kB on ext4; a flat one takes a block or page, an inode, a name."""


KINDS = {
    "arc2k": Kind(2_000),
    "arc10k": Kind(10_000),
    "arc20k": Kind(20_000),
    "arc100k": Kind(100_000),
    "arc": Kind(1_290_284),
    "names": Kind(1_290_284, NAMES, 6_000),
    "flat100k": Kind(100_000, FLAT, 5_000),
    "flat200k": Kind(200_000, FLAT, 5_000),
}


@dataclass(frozen=True)
class FileSet:
    """A set that is there, and some of its files, of which the kernel is asked."""

    path: Path
    properties: dict[str, Any]
    """As `stook bench fileset --json` prints them."""
    sample: list[str]
    """Paths below the set."""


def ensure(place: Place, name: str, stook: Path) -> FileSet:
    """The set, made unless it is there."""
    path, marker = place.path("sets", name), place.path("sets", f"{name}.json")
    try:
        known = json.loads(marker.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        known = {}
    if known.get("version") != VERSION or len(files_in(path)) != KINDS[name].files:
        for old in (marker, path):
            place.remove(old)
        known = make(path, KINDS[name], stook)
        marker.write_text(json.dumps(known))
    return FileSet(path, known["properties"], known["sample"])


def make(path: Path, kind: Kind, stook: Path) -> dict[str, Any]:
    """Makes the set, under another name first, so that a part of one is never taken for it; returns its marker."""
    partial = path.with_name(path.name + PARTIAL)
    partial.parent.mkdir(exist_ok=True)
    command = [stook, "bench", "fileset", partial, "--files", kind.files, "--seed", SEED, "--spec", kind.spec, "--json"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Refused(f"the file set {path.name} could not be made: {done.stderr.strip()}")
    found = sorted(files_in(partial))
    sample = random.Random(SEED).sample(found, min(SAMPLE, len(found)))
    partial.rename(path)
    # The summary is the last line.
    properties = json.loads(done.stdout.splitlines()[-1])
    return {"version": VERSION, "properties": properties, "sample": sample}


def files_in(path: Path) -> list[str]:
    return [os.path.relpath(f"{top}/{file}", path) for top, _, files in os.walk(path) for file in files]


def remove_partial(place: Place) -> None:
    """Removes what an interrupted run left."""
    for path in place.path("sets").glob("*" + PARTIAL):
        place.remove(path)
