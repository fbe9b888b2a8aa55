"""Makes the file sets that are not `arc`: one flat directory, and a tree shaped like a fresh React app.

Names, sizes, contents and times are the same for the same seed. One thread: of a flat directory there is nothing to
divide, and making 200,000 files takes seconds. Called by `filesets`, which measures what was made.
"""

from __future__ import annotations

import math
import os
import random
from pathlib import Path, PurePosixPath

FLAT_BYTES = 100
APP_DIRECTORIES = 4_863
# Entries of the app lie at most so far below its root.
APP_DEPTH = 8
# Packages right in the outer `node_modules`; others are nested.
APP_PACKAGES = 860
# Of ten directories below a package, how many are a package in a `node_modules` of its own.
NESTED = 0.1
# Log-normal, by eye: what the sizes are matters little to what is done with this set.
APP_MEDIAN_BYTES, APP_SIGMA, APP_LARGEST_BYTES = 1_000, 1.4, 200_000
FIRST_TIME_NS, TIME_SPAN_NS = 1_672_531_200 * 10**9, 63_072_000 * 10**9
TEXT = b"export const lorem = (ipsum) => dolor(sit, amet); // 0123456789\n"


def flat(root: Path, files: int, seed: int) -> None:
    """One directory with files of 100 B. Not empty ones: those would measure names only."""
    source = random.Random(seed)
    maker = Maker(source)
    root.mkdir()
    for number in range(files):
        maker.make(root / f"f{number:07}.dat", FLAT_BYTES)
    os.utime(root, ns=maker.times())


def app(root: Path, files: int, seed: int) -> None:
    """4,863 directories, the root included, most in packages of `node_modules`; files differ in number and size."""
    source = random.Random(seed)
    maker = Maker(source)
    directories = app_directories(source)
    # Few directories have many files.
    weights = [source.lognormvariate(0.0, 1.0) for _ in directories]
    chosen = source.choices(range(len(directories)), weights, k=files)
    for path in directories:
        (root / path).mkdir()
    for number, directory in enumerate(chosen):
        size = min(int(source.lognormvariate(math.log(APP_MEDIAN_BYTES), APP_SIGMA)), APP_LARGEST_BYTES)
        maker.make(root / directories[directory] / f"module{number}.js", size)
    for path in directories:
        os.utime(root / path, ns=maker.times())


def app_directories(source: random.Random) -> list[PurePosixPath]:
    """Parents before their children."""
    root = PurePosixPath()
    found = [root, root / "public", root / "src", root / "node_modules"]
    found += [root / "node_modules" / f"package{number}" for number in range(APP_PACKAGES)]
    parents, nested = found[4:], set[PurePosixPath]()
    while len(found) < APP_DIRECTORIES:
        parent = source.choice(parents)
        inner = parent / "node_modules"
        # The package goes two levels deeper, and its files one more.
        is_package = source.random() < NESTED and len(parent.parts) + 2 < APP_DEPTH
        if is_package and inner not in nested and len(found) + 2 <= APP_DIRECTORIES:
            nested.add(inner)
            new = [inner, inner / f"package{len(found)}"]
        elif len(parent.parts) + 1 < APP_DEPTH:
            new = [parent / f"part{len(found)}"]
        else:
            continue
        found += new
        parents.append(new[-1])
    return found


class Maker:
    """Makes files with contents and times from one source of chance."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.contents = TEXT * (APP_LARGEST_BYTES // len(TEXT) + 2)

    def make(self, path: Path, size: int) -> None:
        start = self.source.randrange(len(TEXT))
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.write(descriptor, self.contents[start : start + size])
            os.utime(descriptor, ns=self.times())
        finally:
            os.close(descriptor)

    def times(self) -> tuple[int, int]:
        """A time in 2023 or 2024, to the nanosecond."""
        return (FIRST_TIME_NS + self.source.randrange(TIME_SPAN_NS),) * 2
