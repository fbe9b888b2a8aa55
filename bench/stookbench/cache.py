"""The page cache: made hot or cold, and proved to be so.

Cold: everything written, caches dropped, then proofs before and after the run.
1. Of a random sample of files less than 1 % of the pages are resident. The sample was opened before the drop, since
   opening after it would read inode tables and so warm what is to be cold; then it is closed and dropped as well.
2. The file system's inode objects have become few; or, where others hold many, the run made nearly as many new ones as
   the tree has, and wrote no tree, whose inodes would be new as well. Freed objects are counted until a grace period of
   RCU is over (of 100,000 on xfs up to 30 % right after a drop, none 0.1 s later), so the count is awaited.
3. The run read from the device at least what the inodes take there. Not asked of NFS, whose reads are not counted so.
Hot: at least 99 % of the pages of a sample are resident. What a walk reads has no pages to ask for: there the run
itself must not have read from the device, see `measure`.
Only this kernel's caches are meant; a virtual machine's host may hold more.
"""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from .pair import Refused

DROP = Path("/proc/sys/vm/drop_caches")
SYSCALL_CACHESTAT = 451
COLD_AT_MOST = 0.01
HOT_AT_LEAST = 0.99
# A tree smaller than this leaves too few inodes to tell from those of other programs.
COUNTABLE_INODES = 10_000
# Of the inodes of the tree, how many may be left after the drop; other programs open files meanwhile.
INODES_LEFT = 0.05
# Where more are left, how many the run must have made.
INODES_LOADED = 0.95
# On the device: ext4 has 128 or more, xfs 256, btrfs 160. Seen with arc100k: 368 on ext4, 620 on xfs and overlay.
SMALLEST_INODE_BYTES = 128
DROPS, SETTLING_S = 5, 0.1
SLABS = {
    "ext4": ["ext4_inode_cache"],
    "xfs": ["xfs_inode"],
    "btrfs": ["btrfs_inode"],
    "nfs": ["nfs_inode_cache"],
    "nfs4": ["nfs_inode_cache"],
    # Its own and those of the file systems below it.
    "overlay": ["ovl_inode", "ext4_inode_cache", "xfs_inode", "btrfs_inode", "nfs_inode_cache"],
}
PAGE = os.sysconf("SC_PAGE_SIZE")

libc = ctypes.CDLL(None, use_errno=True)


class CachestatRange(ctypes.Structure):
    _fields_ = (("offset", ctypes.c_uint64), ("length", ctypes.c_uint64))


class Cachestat(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_uint64) for name in ("cached", "dirty", "writeback", "evicted", "recently_evicted")
    )


@dataclass(frozen=True)
class Counters:
    """What the kernel holds for file systems; inodes of this one, or of all if they cannot be told apart."""

    inodes: int
    dentries: int
    buffer_bytes: int


def counters(filesystem: str) -> Counters:
    dentries = int(Path("/proc/sys/fs/dentry-state").read_text().split()[0])
    meminfo = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return Counters(inode_objects(filesystem), dentries, int(meminfo["Buffers"].split()[0]) * 1024)


def inode_objects(filesystem: str) -> int:
    """Objects in the file system's slabs; all inodes where those are not known or not to be read."""
    try:
        lines = Path("/proc/slabinfo").read_text().splitlines()
    except OSError:
        lines = []
    slabs = SLABS.get(filesystem, [])
    found = [int(line.split()[1]) for line in lines if line.split()[0] in slabs]
    return sum(found) if found else int(Path("/proc/sys/fs/inode-nr").read_text().split()[0])


def settled_inode_objects(filesystem: str) -> int:
    """The same when the number no longer falls."""
    count = inode_objects(filesystem)
    while True:
        time.sleep(SETTLING_S)
        before, count = count, inode_objects(filesystem)
        if count >= before:
            return count


def resident_pages(descriptor: int) -> tuple[int, int]:
    """Pages of a file in the cache, and all its pages."""
    size = os.fstat(descriptor).st_size
    pages = -(-size // PAGE)
    span, facts = CachestatRange(0, 0), Cachestat()
    failed = libc.syscall(SYSCALL_CACHESTAT, descriptor, ctypes.byref(span), ctypes.byref(facts), 0)
    cached = resident_by_mincore(descriptor, size) if failed else facts.cached
    # A file being written may have pages beyond its end.
    return min(cached, pages), pages


def resident_by_mincore(descriptor: int, size: int) -> int:
    """The same for kernels before 6.5."""
    if size == 0:
        return 0
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long)
    read, shared = 1, 1
    address = libc.mmap(None, size, read, shared, descriptor, 0)
    if address in (None, ctypes.c_void_p(-1).value):
        raise Refused("the page cache cannot be asked: mmap failed")
    try:
        seen = (ctypes.c_ubyte * -(-size // PAGE))()
        if libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), seen) != 0:
            raise Refused("the page cache cannot be asked: neither cachestat nor mincore")
        return sum(page & 1 for page in seen)
    finally:
        libc.munmap(ctypes.c_void_p(address), ctypes.c_size_t(size))


def resident_share(descriptors: Sequence[int]) -> float:
    """The share of the files' pages that is in the cache; 1 if they have none."""
    counts = [resident_pages(descriptor) for descriptor in descriptors]
    cached, pages = (sum(column) for column in zip(*counts, strict=True))
    return cached / pages if pages else 1.0


def share_of(files: Sequence[Path]) -> float:
    """The same for files by name. Opening warms their inodes, so only for what is to be hot."""
    with ExitStack() as opened:
        return resident_share([open_in(opened, file) for file in files])


def open_in(opened: ExitStack, file: Path) -> int:
    descriptor = os.open(file, os.O_RDONLY)
    opened.callback(os.close, descriptor)
    return descriptor


def may_drop() -> bool:
    return os.access(DROP, os.W_OK)


def drop() -> None:
    os.sync()
    DROP.write_text("3\n")


def drop_until_few(inodes: int, filesystem: str) -> None:
    """Drops, and again while that helps: inodes that are still being written are not freed."""
    drop()
    left = settled_inode_objects(filesystem)
    for _ in range(DROPS):
        if few_left(left, inodes):
            return
        drop()
        before, left = left, settled_inode_objects(filesystem)
        if left >= before:
            return


def make_cold(files: Sequence[Path], inodes: int, filesystem: str) -> dict[str, int | float]:
    """Drops the caches and returns what is known then; Refused if pages are left. `inodes` are those of the tree."""
    with ExitStack() as opened:
        descriptors = [open_in(opened, file) for file in files]
        before = counters(filesystem)
        drop()
        share = resident_share(descriptors)
    if doubt := not_cold(share):
        raise Refused(f"the caches could not be dropped: {doubt}")
    drop_until_few(inodes, filesystem)
    after = counters(filesystem)
    return {
        "resident_share": round(share, 4),
        "sampled_files": len(files),
        "inodes_before": before.inodes,
        "inodes_after": after.inodes,
        "dentries_before": before.dentries,
        "dentries_after": after.dentries,
        "buffer_bytes_before": before.buffer_bytes,
        "buffer_bytes_after": after.buffer_bytes,
    }


def not_cold(share: float) -> str | None:
    """Why the caches do not count as dropped."""
    return f"{share:.1%} of the sampled pages are resident" if share >= COLD_AT_MOST else None


def few_left(inodes_left: int, inodes_of_tree: int) -> bool:
    """Whether the inodes that are cached prove that those of the tree are not; a small tree's prove nothing."""
    return inodes_of_tree < COUNTABLE_INODES or inodes_left <= INODES_LEFT * inodes_of_tree


def not_cold_after_all(
    inodes_of_tree: int, inodes_left: int, inodes_loaded: int | None, read_bytes: int, filesystem: str
) -> str | None:
    """Why a run over a tree does not count as cold, from what was left before it and what it did.

    None is a run of which it is not known how many inodes it loaded.
    """
    if not few_left(inodes_left, inodes_of_tree):
        left = f"{inodes_left:,} inodes were still cached"
        if inodes_loaded is None:
            return f"{left}, and the tree has {inodes_of_tree:,}"
        if inodes_loaded < INODES_LOADED * inodes_of_tree:
            return f"{left}, and the run loaded only {max(inodes_loaded, 0):,} of the {inodes_of_tree:,} of the tree"
    if filesystem not in ("nfs", "nfs4") and read_bytes < inodes_of_tree * SMALLEST_INODE_BYTES:
        return f"read only {read_bytes:,} bytes from the device although cold"
    return None


def not_hot(share: float) -> str | None:
    """Why the inputs do not count as cached."""
    return None if share >= HOT_AT_LEAST else f"only {share:.1%} of the sampled pages are resident"
