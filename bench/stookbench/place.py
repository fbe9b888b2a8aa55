"""A directory to measure in: what file system it is on, whether things fit, and how they are removed.

The directory is ours: it carries a marker, and one with other contents is refused, so nothing else is ever removed.
Names of directories never get into results; `Place.scrub` writes them as `{dir}`.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .pair import Pair, Refused

MARKER = "made-by-stook-bench"
# Of one file of the set, with headers or rounding to blocks: 8.7 kB in a volume, 8.9 kB on ext4, measured on arc100k.
BYTES_PER_FILE = 9_500
SPARE = 0.10


@dataclass(frozen=True)
class Mount:
    """The file system of a directory."""

    filesystem: str
    options: str

    @staticmethod
    def of(path: Path) -> Mount:
        with open("/proc/self/mountinfo") as lines:
            return mount_of(path.stat().st_dev, lines.read())


def mount_of(device: int, mountinfo: str) -> Mount:
    """The last mount of a device. Values of options that are paths are left out."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    found = Mount("unknown", "")
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, (filesystem, _, options) = before.split(), after.split(maxsplit=2)
        if fields[2] == wanted:
            shown = dict.fromkeys(fields[5].split(",") + options.split(","))
            found = Mount(filesystem, ",".join(option for option in shown if "/" not in option))
    return found


class Place:
    """A bench directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory.absolute()
        self.claim()
        self.mount = Mount.of(self.directory)

    def claim(self) -> None:
        """Makes the directory, or sees that it is ours."""
        self.directory.mkdir(parents=True, exist_ok=True)
        marker = self.directory / MARKER
        if not marker.exists():
            if any(self.directory.iterdir()):
                raise SystemExit(f"error: `{self.directory}` is not empty and was not made by this program")
            marker.write_text("All below here is made and removed by bench/run.py.\n")

    @property
    def name(self) -> str:
        return self.mount.filesystem

    def path(self, *names: str) -> Path:
        return self.directory.joinpath(*names)

    def scrub(self, text: str) -> str:
        """The text without this machine's directories."""
        return text.replace(str(self.directory), "{dir}").replace(str(Path.home()), "{home}")

    def lacks_space_for(self, pair: Pair, files: int, files_there: int) -> str | None:
        """What is missing to run a pair over `files` files, of which `files_there` are on the disk already."""
        files = files - files_there + files * (pair.needs_archive() + (pair.writes != "nothing"))
        return lack(self.free_bytes(), self.free_inodes(), files)

    def free_bytes(self) -> int:
        """What can be written; in memory at most half of what is available, the rest is for programs."""
        facts = os.statvfs(self.directory)
        free = facts.f_bavail * facts.f_frsize
        return min(free, available_memory() // 2) if self.mount.filesystem == "tmpfs" else free

    def free_inodes(self) -> int | None:
        """None where there is no limit."""
        facts = os.statvfs(self.directory)
        return facts.f_favail if facts.f_files else None

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

    def fresh(self, *names: str) -> Path:
        """An empty directory, whatever was there."""
        path = self.path(*names)
        self.remove(path)
        path.mkdir(parents=True)
        return path

    def sync(self) -> None:
        """Leaves nothing to be written during the next run."""
        if subprocess.run(["sync", "-f", str(self.directory)], check=False).returncode != 0:
            raise Refused("the file system could not be synced")


def lack(free_bytes: int, free_inodes: int | None, files: int) -> str | None:
    """What `files` more files or members lack, with a tenth to spare."""
    wanted_bytes, wanted_inodes = int(files * BYTES_PER_FILE * (1 + SPARE)), int(files * (1 + SPARE))
    if wanted_bytes > free_bytes:
        return f"needs {wanted_bytes / 1e9:.1f} GB, {free_bytes / 1e9:.1f} GB are free"
    if free_inodes is not None and wanted_inodes > free_inodes:
        return f"needs {wanted_inodes:,} inodes, {free_inodes:,} are free"
    return None


def available_memory() -> int:
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
