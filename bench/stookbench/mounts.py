"""The pairs of `make bench-mount`: an archive that is mounted, against others that are, and against the tree itself.

A side has a **view**: through what it sees the set, a new one for every run. A pair's work is the same on all of them. Goals
are those of the mount's design; where it gives seconds, or a line's rate, the rival is `sleep`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from .pair import COLD, HOT, WARM, Goal, Pair, Side, template_names

# What begins a server: it is in the foreground, so that its processor time and memory can be asked for.
MOUNT = "serve {stook} mount --foreground {options} "


@dataclass(frozen=True)
class View:
    """What mounts it at {seen}, in the shell of `mountbench`, and the files that it reads, each a place of `mountbench`."""

    begin: str = ""
    reads: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    """Options of `stook mount` that it cannot do without."""


VIEWS = {
    "tree": View(reads=("tree",)),
    "none": View(),
    "archive": View(MOUNT + "{archive} {seen}", ("archive",)),
    "compressed": View(MOUNT + "{compressed} {seen}", ("compressed",)),
    "http": View(MOUNT + "--cache {cache} {url} {seen}", ("compressed",)),
    "plain http": View(MOUNT + "--cache {cache} {plain} {seen}", ("archive",)),
    "link": View(MOUNT + "--cache {cache} {link} {seen}", ("compressed",)),
    "cached": View(MOUNT + "--cache {filled} {url} {seen}", ("compressed", "filled")),
    "native": View("{stook} mount --native {archive} {seen}", ("archive",), ("--native",)),
    "ratarmount": View("serve {ratarmount} -f --index-file {ratarindex} {volume} {seen}", ("volume", "ratarindex")),
    "squashfuse": View("serve {squashfuse} -f {squashfs} {seen}", ("squashfs",)),
    "dwarfs": View("serve {dwarfs} {dwarfsimage} {seen} -f", ("dwarfsimage",)),
}

TREE, FUSE = Side("tree", ""), Side("stook", "", view="archive")
HTTP, LINK = Side("stook", "", view="http"), Side("stook", "", view="link")
RATARMOUNT = Side("ratarmount", "", view="ratarmount")
OTHERS = (
    RATARMOUNT,
    Side("squashfuse", "", view="squashfuse", counts=False),
    Side("dwarfs", "", view="dwarfs", counts=False),
    Side("native", "", view="native", counts=False),
)


def pair(work: str, command: str, ours: Side, *rivals: Side, **facts: object) -> Pair:
    """The same command on all sides, but where one has its own."""
    sides = [side if side.command else replace(side, command=command) for side in (ours, *rivals)]
    said: dict[str, Any] = {"evidence": "sampled", "reads": "contents", **facts}
    return Pair(work, sides[0], tuple(sides[1:]), **said)


FIND = "find {seen} -printf '%s %T@ %p\\n'"
READ = """sh -c 'cd "$1" && xargs -0 -n 500 cat <"$2/all" >/dev/null' sh {seen} {lists}"""
READ_RANDOM = """sh -c 'cd "$1" && xargs -0 -n 500 cat <"$2/random" >/dev/null' sh {seen} {lists}"""
READ_4 = """sh -c 'cd "$1" && seq 0 3 | xargs -P 4 -I @ sh -c "xargs -0 -n 500 cat <\\"\\$1/@\\" >/dev/null" sh "$2"' sh
    {seen} {lists}"""
TAR = "sh -c '\"$1\" -cf - -C \"$2\" . | cat >/dev/null' sh {tar} {seen}"
IMPORT = """env PYTHONPATH={seen} PYTHONDONTWRITEBYTECODE=1 {python} -c
    'import numpy, scipy.stats, scipy.sparse, scipy.optimize, pandas'"""

OPEN_STOOK = "sh -c '\"$1\" mount \"$2\" \"$3\" && ls \"$3\" >/dev/null' sh {stook} {archive} {seen}"
OPEN_RATARMOUNT = """sh -c '"$1" --index-file "$2" "$3" "$4" >/dev/null 2>&1 && ls "$4" >/dev/null' sh
    {ratarmount} {ratarindex} {volume} {seen}"""
OURS_OPEN = Side("stook", OPEN_STOOK, view="none")
OPEN = pair(
    "mount", OPEN_STOOK, OURS_OPEN, Side("ratarmount", OPEN_RATARMOUNT, view="none"),
    reads="archive ratarindex", evidence="", goals={HOT: Goal(against={"ratarmount": 0.1})},
)  # fmt: skip
OPEN_LARGE = pair(
    "mount", OPEN_STOOK, OURS_OPEN, Side("1.5 s", "sleep 1.5", view="none"),
    reads="archive", evidence="", goals={HOT: Goal(ratio=1.0)},
)  # fmt: skip
FIRST_FIND = pair(
    "find", FIND, FUSE, RATARMOUNT, TREE,
    evidence="walked_files", goals={HOT: Goal(against={"ratarmount": 0.1, "tree": 2.5})},
)  # fmt: skip
SECOND_FIND = pair(
    "find-again", FIND, replace(FUSE, before=FIND), replace(TREE, before=FIND),
    evidence="walked_files", goals={HOT: Goal(ratio=1.2)},
)  # fmt: skip
# The server's memory: what it holds when all names were asked for, and more of the volume was read than its 64 MiB hold.
NAMES_AND_SOME = """sh -c 'find "$1" -printf "%s %T@ %p\\n" >/dev/null && find "$1" -type f -print0 | head -z -n 100000 |
    xargs -0 cat >/dev/null' sh {seen}"""
MEMORY = pair(
    "memory", NAMES_AND_SOME, Side("stook", "", view="plain http"),
    reads="archive", evidence="", goals={HOT: Goal(peak_bytes=250_000_000)},
)  # fmt: skip
READ_ONE = pair("read", READ, FUSE, TREE, *OTHERS, goals={COLD: Goal(against={"ratarmount": 0.15, "tree": 0.8})})
READ_HOT = pair("read-again", READ, replace(FUSE, before=READ), replace(TREE, before=READ), goals={})
READ_MANY = pair("read-4", READ_4, FUSE, TREE, *OTHERS, goals={})
READ_HTTP = pair("http-4", READ_4, HTTP, TREE, goals={COLD: Goal(ratio=1.0)})
READ_CACHED = pair("http-4", READ_4, replace(HTTP, view="cached"), TREE, goals={WARM: Goal(ratio=0.8)})
READ_LINK = pair(
    "link-4", READ_4, LINK, Side("line rate", "sleep {line_s}", view="none", evidence="nothing"),
    evidence="nothing", goals={COLD: Goal(ratio=1.5)},
)  # fmt: skip
READ_ALL_TAR = pair("tar", TAR, FUSE, TREE, *OTHERS, goals={})
RANDOM = pair("random", READ_RANDOM, FUSE, TREE, *OTHERS, goals={})
NATIVE = pair(
    "native", READ, Side("native", "", view="native"), Side("FUSE", "", view="archive"),
    reads="archive", goals={HOT: Goal(also=(("cpu_s", "FUSE", 0.5),))},
)  # fmt: skip
DECODE = pair("decode", READ_4, HTTP, Side("1 thread", "", view="http", options="--decode-threads 1"), goals={})
IMPORTS = [
    pair("import", IMPORT, HTTP, TREE, evidence="nothing", goals={COLD: Goal(ratio=1.2)}).on("science", COLD, rounds=5),
    pair("import", IMPORT, replace(HTTP, view="cached"), TREE, evidence="nothing").on("science", WARM, rounds=5),
    pair(
        "import", IMPORT, replace(HTTP, before=IMPORT), replace(TREE, before=IMPORT),
        evidence="nothing", goals={HOT: Goal(ratio=1.1)},
    ).on("science", rounds=5),
]  # fmt: skip
CREATE_THEN_ZSTD = """sh -c '"$1" create --quiet "$2" "$3" && exec "$4" -q -3 --rm "$3"/*.tar' sh
    {stook} {tree} {made} {zstd}"""
TAR_TO_ZSTD = """sh -c 'mkdir "$4" && "$1" -cf - -C "$2" . | "$3" -q -3 -T0 -o "$4/volume"' sh {tar} {tree} {zstd} {made}"""
CREATE = pair(
    "create-zstd", "",
    Side("stook", "{stook} create --quiet --zstd=3 {tree} {made}"),
    Side("create, zstd", CREATE_THEN_ZSTD),
    Side("tar, zstd", TAR_TO_ZSTD),
    evidence="nothing", writes="volume",
    goals={HOT: Goal(
        against={"tar, zstd": 1.0},
        also=(("cpu_s", "create, zstd", 1.1), ("made_bytes", "create, zstd", 1.1), ("made_bytes", "tar, zstd", 1.1)),
    )},
)  # fmt: skip

# The slides of CERN's file system with parallel decompression, https://cds.cern.ch: ratios of the time of one job.
SLIDES = {"cold / hot": 2.19, "warm / hot": 1.11}


def mounted(files: str) -> list[Pair]:
    """All pairs on one set."""
    hot = (OPEN, FIRST_FIND, SECOND_FIND, READ_HOT, NATIVE, CREATE)
    cold = (READ_ONE, READ_MANY, READ_HTTP, READ_LINK, DECODE, READ_ALL_TAR, RANDOM)
    pairs = [one.on(files, rounds=3) for one in hot] + [one.on(files, COLD, rounds=3) for one in cold]
    return [*pairs, READ_CACHED.on(files, WARM, rounds=3), *IMPORTS]


# Names alone, 1,290,284 of them.
LARGE = [OPEN_LARGE.on("names", rounds=5), MEMORY.on("names", rounds=2)]


def listed(sets: list[str]) -> list[Pair]:
    """The pairs on these sets, each once."""
    pairs = [one for name in sets for one in (LARGE if name == "names" else mounted(name))]
    return list({one.name: one for one in pairs}.values())


def names(one: Pair) -> set[str]:
    """All names in what its sides run and are mounted with."""
    texts = [text for side in one.sides for text in (side.command, side.before, VIEWS[side.view].begin)]
    found = {name for text in texts for name in template_names(text)} | set(one.reads.split())
    found |= {"science"} if one.file_set == "science" else set()
    made = {"squashfs": "mksquashfs", "ratarindex": "ratarmount", "url": "nginx", "link": "nginx", "plain": "nginx"}
    return found | {made[name] for name in made.keys() & found}
