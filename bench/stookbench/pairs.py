"""The pairs: what is compared with what. To add one, write a `Pair` and put it on a list at the end.

Goals are those of the design: our median over that of the fastest rival that counts, or of one that is named. Nothing
is written to /dev/null by tar, which would then skip the reading. Names in braces are explained in `pair.PLACES`, the
others are rivals.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatch

from .pair import COLD, HOT, SLOW, SSHFS, Goal, Pair, Side

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
    evidence="walked",
    reads="names",
    goals={HOT: Goal(ratio=0.6), COLD: Goal(ratio=0.8), SLOW: SLOW_GOAL},
)
NAMES = Pair(
    work="names",
    ours=Side("stook", "{stook} walk {tree} --format '{{path}}'"),
    rivals=(Side("find", "{find} {tree}"), Side("bfs", "{bfs} {tree}"), Side("fd", "{fd} -u . {tree}")),
    evidence="named",
    reads="names",
)
# Files, bytes, mean, deviation, smallest, largest. Not the median, for which find's output would have to be sorted. No
# %d, which ends at 2^31 in mawk.
AWK = """{{ n++; s += $1; q += $1 * $1; if (n == 1 || $1 < a) a = $1; if ($1 > b) b = $1 }} \
END {{ m = s / n; printf "%.0f %.0f %.1f %.1f %.0f %.0f\\n", n, s, m, sqrt(q / n - m * m), a, b }}"""
FIND_AND_AWK = """sh -c '"$1" "$2" -type f -printf "%s\\n" | "$3" "$4"' sh {find} {tree} {awk}"""
SUMMARY = Pair(
    work="summary",
    ours=Side("stook", "{stook} walk --summary --json {tree}", evidence="summarised"),
    rivals=(Side("find, awk", f"{FIND_AND_AWK} '{AWK}'"),),
    evidence="counted",
    reads="names",
    goals={HOT: Goal(ratio=0.4)},
)
UPDATE = Pair(
    work="update",
    ours=Side("stook", "{stook} update --json {tree} {archive}", evidence="updated"),
    rivals=(Side("own walk", OWN_WALK),),
    evidence="walk_count",
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
    evidence="packed",
    reads="contents",
    writes="volume",
    goals={HOT: Goal(ratio=1.0, peak_bytes=300 * MB), SLOW: SLOW_GOAL},
)
CREATE_VOLUMES = Pair(
    work="create-volumes",
    ours=Side("stook", "{stook} create --volume-size {volume_size} {tree} {out}/archive"),
    rivals=CREATE.rivals[:1],
    evidence="packed",
    reads="contents",
    writes="volume",
    volume_size="1GiB",
    goals={HOT: Goal(ratio=0.8)},
)
EXTRACT = Pair(
    work="extract",
    ours=Side("stook", "{stook} extract {archive} --into {target}"),
    rivals=(Side("tar", 'sh -c \'mkdir "$3" && exec "$1" -xf "$2" -C "$3"\' sh {tar} {volume} {target}'),),
    evidence="unpacked",
    reads="volume",
    writes="tree",
    slow="target",
    goals={HOT: Goal(ratio=0.6), SLOW: SLOW_GOAL},
)
COPY = Pair(
    work="copy",
    ours=Side("stook", "{stook} copy {tree} {target}"),
    rivals=(
        Side("cp", "{cp} -a {tree} {target}"),
        # It keeps neither times nor owners, so it does less.
        Side("cpz", "{cpz} {tree} {target}", evidence="copied_without_times", counts=False),
    ),
    evidence="copied",
    reads="contents",
    writes="tree",
    slow="target",
    goals={HOT: Goal(against={"cp": 0.5, "cpz": 1.0})},
)
COPIED = "{cp} -a {tree} {target}"
REMOVE = Pair(
    work="remove",
    ours=Side("stook", "{stook} remove {target}", before=COPIED),
    rivals=(
        Side("rm", "{rm} -rf {target}", before=COPIED),
        Side("rmz", "{rmz} {target}", before=COPIED),
        Side("zig", "{zig} {target}", before=COPIED),
    ),
    evidence="gone",
    reads="target",
    writes="tree",  # by `before`
    slow="target",
    goals={HOT: Goal(against={"rm": 0.6, "rmz": 1.0, "zig": 0.6}), SLOW: SLOW_GOAL},
)
CHECK = Pair(
    work="check",
    ours=Side("stook", "{stook} check --json {archive}", evidence="checked"),
    rivals=(Side("md5sum", "{md5sum} {volume}"),),
    evidence="summed",
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
    SUMMARY.on("arc100k"),
]
# Trees of 100,000 files are written, and two of one directory. What they hold is little, so names weigh most.
TREES_OF_100K = [EXTRACT.on("arc100k"), COPY.on("arc100k"), REMOVE.on("arc100k")]
FLAT = [
    COPY.on("flat100k", rivals=COPY.rivals[:1], goals={HOT: Goal(ratio=0.7)}),
    REMOVE.on("flat200k", rivals=REMOVE.rivals[:1], goals={HOT: Goal(ratio=1.0)}),
]
# Last of those that share a set, as the others would have to warm it again.
COLD_100K = WALK.on("arc100k", COLD)

# Where a run of a rival takes minutes: one rival, few rounds.
SLOW_WORK = [pair.on("arc20k", SLOW, rounds=3, rivals=pair.rivals[:1]) for pair in (WALK, CREATE, EXTRACT, REMOVE)]

# About five minutes, also on a disk on which to write and remove 100,000 files takes two: so trees of 20,000.
SMALL = [
    *OF_100K,
    COLD_100K,
    *[pair.on("arc20k") for pair in (EXTRACT, COPY, REMOVE)],
    *[pair.on("arc2k", SLOW, rounds=1) for pair in SLOW_WORK],
]

FULL = [
    *OF_100K,
    *TREES_OF_100K,
    COLD_100K,
    *FLAT,
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

# For each pair, with what it needs around its runs. A second round is made unless the first took longer alone.
SMALL_BUDGET_S, FULL_BUDGET_S = 30.0, 420.0
# Half an hour has about 60 of these pairs.
POOL_BUDGET_S = 40.0
# Of a mount, the slowest is a cold read of 100,000 files of ext4.
MOUNT_BUDGET_S = 150.0

# What the full run repeats in memory: what fits beside its outcomes. There is no cold tmpfs, and no goal but that of
# remove, whose work a disk that is slow to discard may hide.
IN_MEMORY = [
    pair if pair.name == "remove-arc100k-hot" else replace(pair, goals={})
    for pair in (*OF_100K, *TREES_OF_100K, *FLAT)
]

# The number of workers that the pool finds by itself against fixed ones. On slowfs and sshfs nothing is kept in the kernel.
FIXED = Goal(ratio=1.25)


def against_jobs(pair: Pair, numbers: tuple[int, ...]) -> Pair:
    """The pair with the same command, with so many workers each, for rivals."""
    fixed = (replace(pair.ours, name=f"{number} jobs", command=f"{pair.ours.command} --jobs {number}") for number in numbers)
    return replace(pair, ours=replace(pair.ours, name="adaptive"), rivals=tuple(fixed))


ALL_WORK = (WALK, CREATE, EXTRACT, COPY, REMOVE)
# Numbers that can be the best: with more latency, or more files, few workers are slower by as much as they are fewer.
POOL_NUMBERS = {
    ("arc2k", "0.2ms"): (1, 2, 8, 32, 128),
    ("arc2k", "1ms"): (8, 32, 128),
    ("arc2k", "5ms"): (32, 128),
    ("arc20k", "0.2ms"): (8, 32, 128),
    ("arc20k", "1ms"): (32, 128),
    ("arc20k", "5ms"): (128,),
}
POOL_SLOW = [
    against_jobs(pair.on(files, SLOW, latency=latency, ttl="0s", rounds=3, goals={SLOW: FIXED}), numbers)
    for (files, latency), numbers in POOL_NUMBERS.items()
    for pair in ALL_WORK
]
POOL_LOCAL = [
    against_jobs(pair.on(files, goals={HOT: Goal(ratio=1.1)}), (1, 2, 4)) for files in ("arc2k", "arc20k") for pair in ALL_WORK
]
# SFTP has times of whole seconds.
SECONDS = {"packed": "packed_as_seen", "unpacked": "copied_without_times", "copied": "copied_without_times"}
POOL_SSHFS = [
    against_jobs(
        pair.on("arc2k", SSHFS, rounds=3, goals={SSHFS: FIXED}, evidence=SECONDS.get(pair.evidence, pair.evidence)),
        (8, 32, 128),
    )
    for pair in ALL_WORK
]
# What lies behind a mount is the same everywhere, so it is measured at one place.
POOL_MOUNTED = [*POOL_SLOW, *POOL_SSHFS]
POOL = [*POOL_LOCAL, *POOL_MOUNTED]


def chosen(pairs: list[Pair], patterns: list[str]) -> list[Pair]:
    """The pairs whose name, or work, matches one of the patterns; there may be several in one text."""
    wanted = [pattern for text in patterns for pattern in text.split()]
    return [pair for pair in pairs if any(fnmatch(name, one) for one in wanted for name in (pair.name, pair.work))]
