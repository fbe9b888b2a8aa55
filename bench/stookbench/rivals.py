"""The rivals: where they come from, how they get here, and which version is measured.

Only those that are asked for. Debian packages are installed by root alone; crates, Python packages, and what is built from a source
of ours by a compiler from PyPI, go into the user's cache, in fixed versions. A rival that cannot be had is missing, and the pairs
that need it are listed as not measured; nothing else fails.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection as Names
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parent.parent


@dataclass(frozen=True)
class Rival:
    """A program and the one place it comes from."""

    name: str
    program: str
    debian: str = ""
    crate: str = ""
    pypi: str = ""
    """Packages for a Python environment of its own."""
    zig: str = ""
    """The compiler's package, for a program of ours, `bench/PROGRAM.zig`."""
    version_arguments: tuple[str, ...] = ("--version",)


RIVALS = (
    Rival("tar", "tar", debian="tar"),
    Rival("find", "find", debian="findutils"),
    Rival("bfs", "bfs", debian="bfs"),
    Rival("fd", "fd", crate="fd-find@10.5.0"),
    Rival("awk", "awk", debian="mawk", version_arguments=("-W", "version")),
    Rival("rm", "rm", debian="coreutils"),
    Rival("rmz", "rmz", crate="rmz@3.2.1"),
    # Without arguments, as it would remove what one names.
    Rival("zig", "deletetree", zig="ziglang==0.17.1", version_arguments=()),
    Rival("cp", "cp", debian="coreutils"),
    Rival("cpz", "cpz", crate="cpz@3.2.1"),
    Rival("md5sum", "md5sum", debian="coreutils"),
    Rival("sync", "sync", debian="coreutils"),
    Rival("ratarmount", "ratarmount", pypi="ratarmount==1.3.0"),
    Rival("squashfuse", "squashfuse_ll", debian="squashfuse", version_arguments=("--help",)),
    Rival("mksquashfs", "mksquashfs", debian="squashfs-tools", version_arguments=("-version",)),
    # In no release of Debian up to 12, nor on crates.io or PyPI: measured where somebody has installed it.
    Rival("dwarfs", "dwarfs", debian="dwarfs", version_arguments=("--help",)),
    Rival("zstd", "zstd", debian="zstd"),
    # No rivals, but what a mount over HTTP needs, and a heavy import.
    Rival("nginx", "nginx", debian="nginx-light", version_arguments=("-v",)),
    Rival("science", "python", pypi="numpy==2.4.6 scipy==1.17.1 pandas==3.1.1"),
    # No rivals, but what a pair on sshfs needs.
    Rival("sshfs", "sshfs", debian="sshfs"),
    Rival("sshd", "sshd", debian="openssh-server", version_arguments=("-V",)),
)
QUIETLY = ["install", "--quiet", "--disable-pip-version-check"]
BY_NAME = {rival.name: rival for rival in RIVALS}


@dataclass(frozen=True)
class Found:
    """A rival that can be run."""

    path: Path
    version: str


class Collection:
    """The rivals that are here, and why others are not."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.found: dict[str, Found] = {}
        self.missing: dict[str, str] = {}

    def collect(self, install: bool, names: Names[str] = BY_NAME) -> None:
        """Finds the rivals of these names, installing what is missing if that is wanted; other names do not count."""
        wanted = [rival for rival in RIVALS if rival.name in names]
        absent = [rival for rival in wanted if self.locate(rival) is None] if install else []
        if any(rival.debian for rival in absent) and os.geteuid() == 0:
            # The lists of packages may be empty or old.
            attempt(["apt-get", "update"])
        for rival in absent:
            say(f"getting {rival.name}")
            if failed := self.install(rival):
                self.missing[rival.name] = f"could not be installed: {failed}"
        for rival in wanted:
            if path := self.locate(rival):
                self.found[rival.name] = Found(path, version_of(path, rival))
            else:
                self.missing.setdefault(rival.name, "is not installed")

    def folder(self, rival: Rival) -> Path:
        """Where it is kept, of its version and that of its source, so that another one is never taken for it."""
        if rival.crate:
            return self.cache / "crates" / rival.crate / "bin"
        if rival.pypi:
            return self.cache / "pypi" / rival.pypi.replace(" ", "-").replace("==", "-") / "bin"
        source = hashlib.sha256((SOURCES / f"{rival.program}.zig").read_bytes()).hexdigest()
        return self.cache / "zig" / f"{rival.zig}-{source[:16]}"

    def locate(self, rival: Rival) -> Path | None:
        """The program: in the cache if it has a fixed version, else that of the system."""
        folders = map(Path, os.get_exec_path()) if rival.debian else [self.folder(rival)]
        candidates = (folder / rival.program for folder in folders)
        return next((path for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)

    def install(self, rival: Rival) -> str | None:
        """Gets it here; says what failed."""
        if rival.debian:
            return attempt(["apt-get", "install", "--yes", "--no-install-recommends", rival.debian])
        if rival.crate:
            root = self.folder(rival).parent
            return attempt(["cargo", "install", "--quiet", "--locked", "--root", str(root), rival.crate])
        if rival.pypi:
            folder = self.folder(rival)
            failed = attempt([sys.executable, "-m", "venv", str(folder.parent)])
            return failed or attempt([str(folder / "python"), "-m", "pip", *QUIETLY, *rival.pypi.split()])
        return self.build_zig(rival)

    def build_zig(self, rival: Rival) -> str | None:
        """The compiler, of 440 MB, is only kept while it compiles."""
        folder = self.folder(rival)
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as temporary:
            python = f"{temporary}/bin/python"
            caches = ["--cache-dir", temporary, "--global-cache-dir", temporary]
            build = [python, "-m", "ziglang", "build-exe", "-O", "ReleaseFast", *caches]
            failed = (
                attempt([sys.executable, "-m", "venv", temporary])
                or attempt([python, "-m", "pip", *QUIETLY, rival.zig])
                or attempt([*build, f"-femit-bin={temporary}/program", str(SOURCES / f"{rival.program}.zig")])
            )
            if not failed:
                Path(temporary, "program").rename(folder / rival.program)
            return failed

    def versions(self) -> dict[str, str]:
        return {name: found.version for name, found in sorted(self.found.items())}


def version_of(path: Path, rival: Rival) -> str:
    """The first line of what it says about itself that has a version in it."""
    environment, command = os.environ | {"LC_ALL": "C"}, [str(path), *rival.version_arguments]
    done = subprocess.run(command, capture_output=True, env=environment, check=False, stdin=subprocess.DEVNULL)
    text = (done.stdout + b"\n" + done.stderr).decode(errors="replace")
    return next((line.strip()[:80] for line in text.splitlines() if re.search(r"\d+\.\d+", line)), "unknown")


def attempt(command: list[str]) -> str | None:
    """Runs a command; the last line it said if it failed."""
    if shutil.which(command[0]) is None:
        return f"{command[0]} is not here to do it"
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    environment |= {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode == 0:
        return None
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[-1] if lines else f"{command[0]} ended with status {done.returncode}"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def cache_directory() -> Path:
    """Where the rivals are kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "stook" / "rivals"
