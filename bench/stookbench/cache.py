"""The page cache: made hot or cold, and proved to be so.

Cold: everything written, caches dropped, then two proofs. Of a random sample of files less than 1 % of the pages are
resident; the sample was opened before the drop, since opening after it would read inode tables and so warm what is to
be cold. And the file system's inode objects have become few. Then the sample is closed and what it held is dropped.
Hot: at least 99 % of the pages of a sample are resident. What a walk reads has no pages to ask for: there the run
itself must not have read from the device, see `measure`.
Only this kernel's caches are meant; a virtual machine's host may hold more.
"""

from __future__ import annotations

import ctypes
import os
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
SLABS = {"ext4": "ext4_inode_cache", "xfs": "xfs_inode", "btrfs": "btrfs_inode", "nfs4": "nfs_inode_cache"}
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
    """Objects in the file system's slab; all inodes where that is not to be read."""
    try:
        lines = Path("/proc/slabinfo").read_text().splitlines()
    except OSError:
        lines = []
    slab = SLABS.get(filesystem)
    found = next((int(line.split()[1]) for line in lines if slab and line.split()[0] == slab), None)
    return int(Path("/proc/sys/fs/inode-nr").read_text().split()[0]) if found is None else found


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


def make_cold(files: Sequence[Path], inodes: int, filesystem: str) -> dict[str, object]:
    """Drops the caches and returns the proof; Refused if it fails. `inodes` are those of the tree."""
    with ExitStack() as opened:
        descriptors = [open_in(opened, file) for file in files]
        before = counters(filesystem)
        drop()
        share = resident_share(descriptors)
    drop()
    after = counters(filesystem)
    if doubt := not_cold(share, after.inodes, inodes):
        raise Refused(f"the caches could not be dropped: {doubt}")
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


def not_cold(share: float, inodes_left: int, inodes_of_tree: int) -> str | None:
    """Why the caches do not count as dropped."""
    if share >= COLD_AT_MOST:
        return f"{share:.1%} of the sampled pages are resident"
    if inodes_of_tree >= COUNTABLE_INODES and inodes_left > INODES_LEFT * inodes_of_tree:
        return f"{inodes_left:,} inodes are still cached, of a tree with {inodes_of_tree:,}"
    return None


def not_hot(share: float) -> str | None:
    """Why the inputs do not count as cached."""
    return None if share >= HOT_AT_LEAST else f"only {share:.1%} of the sampled pages are resident"
