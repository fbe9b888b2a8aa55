"""Why a pair cannot be measured here; that is no failure. Looked at before anything is made for the pair."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from . import cache, filesets
from .pair import COLD, HOT, SLOW, Pair
from .place import Place, available_memory

FUSE = Path("/dev/fuse")


def of_programs(pair: Pair, missing: dict[str, str], has_slowfs: bool) -> str | None:
    """Programs and rights that are missing."""
    if found := [f"{name} {why}" for name, why in sorted(missing.items()) if name in pair.names() | {"tar"}]:
        return "; ".join(found)
    if pair.state == COLD and not cache.may_drop():
        return "needs root"
    if pair.state == SLOW and not has_slowfs:
        return "slowfs is not built"
    if pair.state == SLOW and not os.access(FUSE, os.R_OK | os.W_OK):
        return f"needs {FUSE}"
    if pair.state == SLOW and os.geteuid() != 0 and shutil.which("fusermount3") is None:
        return "needs fusermount3, or root"
    return None


def of_places(pair: Pair, place: Place, sets: Place, archive: Path) -> str | None:
    """What the places cannot give: a cold state, space, memory for what is to be hot."""
    source = input_place(pair, place, sets)
    if pair.state == COLD and source.in_memory:
        return "tmpfs has no cold state"
    kind = filesets.KINDS[pair.file_set]
    new = kind.files - filesets.files_there(sets, pair.file_set)
    left = kind.files * ((pair.needs_archive() and not archive.exists()) + (pair.writes != "nothing"))
    if lacking := lack_of_space(place, sets, new, left, kind.bytes_per_file):
        return lacking
    if pair.state == HOT and pair.reads in ("contents", "volume") and not source.in_memory:
        return lack_of_memory(kind, new if sets.in_memory else 0, available_memory())
    return None


def input_place(pair: Pair, place: Place, sets: Place) -> Place:
    """Where that lies which is hot or cold."""
    return place if pair.reads in ("volume", "target") else sets


def lack_of_space(place: Place, sets: Place, new: int, left: int, bytes_per_file: int) -> str | None:
    """What is missing for `new` files of the set and `left` files or members beside it."""
    if sets.device == place.device:
        return place.lack(new + left, bytes_per_file)
    lacking = sets.lack(new, bytes_per_file)
    return f"where the sets are: {lacking}" if lacking else place.lack(left, bytes_per_file)


def lack_of_memory(kind: filesets.Kind, new: int, available: int) -> str | None:
    """What is missing to keep the inputs in memory once `new` files have been made there."""
    wanted, left = kind.files * kind.bytes_per_file, max(available - new * kind.bytes_per_file, 0)
    if wanted <= left:
        return None
    return f"needs {wanted / 1e9:.1f} GB of memory to be hot, {left / 1e9:.1f} GB are available"
