"""A directory to measure in: what file system it is on, whether things fit, and how they are removed.

The directory is ours: it carries a marker; one with other contents, of another user, or behind a symbolic link is
refused, so nothing else is ever removed. The marker is locked while a program works there: a second one would remove
what the first one uses.
"""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MARKER = "made-by-stook-bench"
SPARE = 0.10
# Of the memory, what a set on tmpfs leaves for programs, and for the volumes and trees that they write elsewhere.
MEMORY_LEFT_BYTES = 4_000_000_000


@dataclass(frozen=True)
class Mount:
    """The file system of a directory. Options that are paths are left out."""

    filesystem: str
    options: str

    @staticmethod
    def of(path: Path) -> Mount:
        command = ["findmnt", "--noheadings", "--raw", "--output", "FSTYPE,OPTIONS", "--target", path]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        # Of several mounts on one place the last one counts.
        *_, filesystem, options = ["unknown", "", *said.split()]
        return Mount(filesystem, ",".join(option for option in options.split(",") if "/" not in option))


class Place:
    """A bench directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.claim()
        self.mount = Mount.of(self.directory)

    def claim(self) -> None:
        """Makes the directory, or sees that it is ours: below /var/tmp anyone may have been first."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise SystemExit(f"error: `{self.directory}` is no directory") from None
        facts, marker = self.directory.lstat(), self.directory / MARKER
        if not stat.S_ISDIR(facts.st_mode):
            raise SystemExit(f"error: `{self.directory}` is a symbolic link, and all below it would be removed")
        if facts.st_uid != os.geteuid():
            raise SystemExit(f"error: `{self.directory}` belongs to another user")
        if not marker.exists():
            if any(self.directory.iterdir()):
                raise SystemExit(f"error: `{self.directory}` is not empty and was not made by this program")
            marker.write_text("All below here is made and removed by bench/run.py.\n")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other programs out; the lock is gone with this one, however it ends."""
        with (self.directory / MARKER).open("rb") as marker:
            try:
                fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise SystemExit(f"error: another `bench/run.py` is at work in `{self.directory}`") from None
            except OSError as why:
                raise SystemExit(f"error: `{self.directory}` cannot be locked: {why.strerror}") from None
            yield

    @property
    def name(self) -> str:
        return self.mount.filesystem

    @property
    def in_memory(self) -> bool:
        return self.mount.filesystem == "tmpfs"

    @property
    def device(self) -> int:
        return self.directory.stat().st_dev

    def path(self, *names: str) -> Path:
        return self.directory.joinpath(*names)

    def lack(self, files: int, bytes_per_file: int) -> str | None:
        """What is missing to write `files` more files or members, with a tenth to spare."""
        facts, free = os.statvfs(self.directory), self.free_bytes()
        wanted_bytes, wanted_inodes = int(files * bytes_per_file * (1 + SPARE)), int(files * (1 + SPARE))
        if wanted_bytes > free:
            return f"needs {wanted_bytes / 1e9:.1f} GB, {free / 1e9:.1f} GB are free"
        # File systems without a limit say that they have none at all.
        if facts.f_files and wanted_inodes > facts.f_favail:
            return f"needs {wanted_inodes:,} inodes, {facts.f_favail:,} are free"
        return None

    def free_bytes(self) -> int:
        """What can be written."""
        facts = os.statvfs(self.directory)
        free = facts.f_bavail * facts.f_frsize
        return min(free, max(available_memory() - MEMORY_LEFT_BYTES, 0)) if self.in_memory else free

    def remove(self, path: Path) -> None:
        """Removes a tree below the directory, two subtrees at a time: what it takes is not measured."""
        if self.directory not in path.parents:
            raise ValueError(f"{path} is not below the bench directory")
        if path.is_dir() and not path.is_symlink():
            command = 'find "$1" -mindepth 1 -maxdepth 1 -print0 | xargs -0 -r -n 8 -P 2 rm -rf --'
            subprocess.run(["sh", "-c", command, "sh", str(path)], check=True)
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def scrub(text: str, known: dict[Path, str]) -> str:
    """The text without these directories and that of the user, the longest first as one may lie in another."""
    known = {Path.home(): "{home}"} | known
    for directory in sorted(known, key=lambda path: len(path.parts), reverse=True):
        text = text.replace(str(directory), known[directory]) if len(directory.parts) > 1 else text
    return text


def available_memory() -> int:
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
