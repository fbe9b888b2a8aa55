"""Why a pair cannot be measured here; that is no failure. Looked at before anything is made for the pair."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from . import cache, filesets
from .pair import COLD, HOT, SLOW, Pair
from .place import BYTES_PER_FILE, Place, available_memory

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


def of_place(pair: Pair, place: Place, archive: Path) -> str | None:
    """What the place cannot give: a cold state, space, memory for what is to be hot."""
    if pair.state == COLD and place.in_memory:
        return "tmpfs has no cold state"
    files = filesets.COUNTS[pair.file_set]
    new = files - filesets.files_there(place, pair.file_set)
    left = files * ((pair.needs_archive() and not archive.exists()) + (pair.writes != "nothing"))
    if lacking := place.lack(new + left):
        return lacking
    if pair.state == HOT and pair.reads in ("contents", "volume") and not place.in_memory:
        return lack_of_memory(files, available_memory())
    return None


def lack_of_memory(files: int, available: int) -> str | None:
    """What is missing to keep the inputs in memory."""
    wanted = files * BYTES_PER_FILE
    if wanted <= available:
        return None
    return f"needs {wanted / 1e9:.1f} GB of memory to be hot, {available / 1e9:.1f} GB are available"
