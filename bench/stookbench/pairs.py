"""The pairs: what is compared with what. To add one, write a `Pair` and put it on a list at the end.

Goals are those of the design: our median over that of the fastest rival that counts. Nothing is written to /dev/null
by tar, which would then skip the reading. Names in braces are explained in `pair.PLACES`, the others are rivals.
"""

from __future__ import annotations

from fnmatch import fnmatch

from . import evidence
from .pair import COLD, HOT, SLOW, Goal, Pair, Side

MB = 1_000_000
SLOW_GOAL = Goal(ratio=0.05)
OWN_WALK = "{stook} walk {tree} --format '{{size}} {{mtime}} {{path}}'"

WALK = Pair(
    work="walk",
    ours=Side("stook", OWN_WALK),
    rivals=(
        Side("find", "{find} {tree} -printf '%s %T@ %p\\n'"),
        Side("bfs", "{bfs} {tree} -printf '%s %T@ %p\\n'"),
    ),
    evidence=evidence.walked,
    reads="names",
    goals={HOT: Goal(ratio=0.6), COLD: Goal(ratio=0.8), SLOW: SLOW_GOAL},
)
NAMES = Pair(
    work="names",
    ours=Side("stook", "{stook} walk {tree} --format '{{path}}'"),
    rivals=(Side("find", "{find} {tree}"), Side("bfs", "{bfs} {tree}"), Side("fd", "{fd} -u . {tree}")),
    evidence=evidence.named,
    reads="names",
)
UPDATE = Pair(
    work="update",
    ours=Side("stook", "{stook} update --json {tree} {archive}", evidence=evidence.updated),
    rivals=(Side("own walk", OWN_WALK),),
    evidence=evidence.walk_count,
    reads="names",
    goals={HOT: Goal(ratio=1.5, peak_bytes=80 * MB)},
)
TAR_AND_SYNC = """sh -c '"$1" -cf "$3" -C "$4" . && "$2" -d "$3"' sh {tar} {sync} {out}/volume.tar {tree}"""
CREATE = Pair(
    work="create",
    ours=Side("stook", "{stook} create {tree} {out}/archive"),
    rivals=(
        Side("tar", "{tar} -cf {out}/volume.tar -C {tree} ."),
        Side("tar, sync", TAR_AND_SYNC, counts=False),
    ),
    evidence=evidence.packed,
    reads="contents",
    writes="volume",
    goals={HOT: Goal(ratio=1.0, peak_bytes=300 * MB), SLOW: SLOW_GOAL},
)
CREATE_VOLUMES = Pair(
    work="create-volumes",
    ours=Side("stook", "{stook} create --volume-size {volume_size} {tree} {out}/archive"),
    rivals=CREATE.rivals[:1],
    evidence=evidence.packed,
    reads="contents",
    writes="volume",
    volume_size="1GiB",
    goals={HOT: Goal(ratio=0.8)},
)
EXTRACT = Pair(
    work="extract",
    ours=Side("stook", "{stook} extract {archive} --into {target}"),
    rivals=(Side("tar", 'sh -c \'mkdir "$3" && exec "$1" -xf "$2" -C "$3"\' sh {tar} {volume} {target}'),),
    evidence=evidence.unpacked,
    reads="volume",
    writes="tree",
    slow="target",
    goals={HOT: Goal(ratio=0.6), SLOW: SLOW_GOAL},
)
CHECK = Pair(
    work="check",
    ours=Side("stook", "{stook} check --json {archive}", evidence=evidence.checked),
    rivals=(Side("md5sum", "{md5sum} {volume}"),),
    evidence=evidence.summed,
    reads="volume",
    goals={HOT: Goal(ratio=0.5)},
)

# A tenth of the files, so volumes of a tenth.
OF_100K = [
    WALK.on("arc100k"),
    UPDATE.on("arc100k"),
    CREATE.on("arc100k"),
    CREATE_VOLUMES.on("arc100k", volume_size="100MiB"),
    CHECK.on("arc100k"),
]
EXTRACT_100K = EXTRACT.on("arc100k")
# Last of those that share a set, as the others would have to warm it again.
COLD_100K = WALK.on("arc100k", COLD)

# Where a run of a rival takes minutes: one rival, few rounds.
SLOW_WORK = [pair.on("arc20k", SLOW, rounds=3, rivals=pair.rivals[:1]) for pair in (WALK, CREATE, EXTRACT)]

# About five minutes, also on a disk on which to extract and remove 100,000 files takes two: so 20,000.
SMALL = [*OF_100K, COLD_100K, EXTRACT.on("arc20k"), *[pair.on("arc2k", SLOW, rounds=1) for pair in SLOW_WORK]]

FULL = [
    *OF_100K,
    EXTRACT_100K,
    COLD_100K,
    WALK.on("arc"),
    NAMES.on("arc"),
    UPDATE.on("arc"),
    CREATE.on("arc"),
    CREATE_VOLUMES.on("arc"),
    EXTRACT.on("arc", rounds=3),
    CHECK.on("arc"),
    WALK.on("arc", COLD),
    *SLOW_WORK,
]

# For each pair, with what it needs around its runs. A second round is always made, but not on slowfs.
SMALL_BUDGET_S, FULL_BUDGET_S = 30.0, 420.0

# What the full run repeats in memory: what fits beside its outcomes. There is no cold tmpfs and no goal for it.
IN_MEMORY = [pair.on("arc100k", goals={}) for pair in (*OF_100K, EXTRACT_100K)]


def chosen(pairs: list[Pair], patterns: list[str]) -> list[Pair]:
    """The pairs whose name, or work, matches one of the patterns; there may be several in one text."""
    wanted = [pattern for text in patterns for pattern in text.split()]
    return [pair for pair in pairs if any(fnmatch(name, one) for one in wanted for name in (pair.name, pair.work))]
