"""The rivals: where they come from, how they get here, and which version is measured.

Only those that are asked for. Crates go into the user's cache, in fixed versions, and what is built from a source of ours
by a compiler from PyPI. Debian packages are installed when root runs this; other users get them
unpacked in the cache. A rival that cannot be had is missing, and the pairs that need it are listed as not measured;
nothing else fails.
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
)
# What apt-get says, in its last line, when its lists of packages are empty or old.
NOT_FOUND = re.compile("Unable to locate package|has no installation candidate|Unable to fetch|Failed to fetch")
QUIETLY = ["install", "--quiet", "--disable-pip-version-check"]
BY_NAME = {rival.name: rival for rival in RIVALS}


@dataclass(frozen=True)
class Found:
    """A rival that can be run."""

    path: Path
    version: str
    libraries: str = ""
    """Where its libraries are, if they were unpacked beside it."""


class Collection:
    """The rivals that are here, and why others are not."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        self.found: dict[str, Found] = {}
        self.missing: dict[str, str] = {}
        self.is_updated = False

    def collect(self, install: bool, names: Names[str] = BY_NAME) -> None:
        """Finds the rivals of these names, installing what is missing if that is wanted; other names do not count."""
        wanted = [rival for rival in RIVALS if rival.name in names]
        if install:
            self.install([rival for rival in wanted if self.locate(rival) is None])
        for rival in wanted:
            if path := self.locate(rival):
                libraries = self.libraries() if path.is_relative_to(self.cache / "debian") else ""
                self.found[rival.name] = Found(path, version_of(path, rival, libraries), libraries)
                self.missing.pop(rival.name, None)
            else:
                self.missing.setdefault(rival.name, "is not installed")

    def locate(self, rival: Rival) -> Path | None:
        """The program: in the cache if it has a fixed version, else that of the system, else unpacked in the cache."""
        if rival.crate:
            # The version is part of the directory, so another one is never taken for it.
            folders = [self.cache / "crates" / rival.crate / "bin"]
        elif rival.zig:
            folders = [self.zig_folder(rival)]
        else:
            folders = [*map(Path, os.get_exec_path()), self.cache / "debian/usr/bin", self.cache / "debian/bin"]
        candidates = (folder / rival.program for folder in folders)
        return next((path for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)

    def install(self, wanted: list[Rival]) -> None:
        for rival in wanted:
            if rival.debian:
                self.install_debian(rival)
            elif rival.crate:
                self.install_crate(rival)
            else:
                self.build_zig(rival)

    def install_debian(self, rival: Rival) -> None:
        if shutil.which("apt-get") is None:
            self.note(rival, "is not installed, and apt-get is not here to do it")
            return
        say(f"getting {rival.debian} from Debian")
        failed = self.get_package(rival.debian)
        if failed and NOT_FOUND.search(failed) and self.update():
            failed = self.get_package(rival.debian)
        if failed:
            self.note(rival, f"could not be installed from Debian: {failed}")

    def update(self) -> bool:
        """Gets the lists of packages, once; whether that is new. Without root there is only what others got."""
        if self.is_updated or os.geteuid() != 0:
            return False
        self.is_updated = True
        return attempt(["apt-get", "update"]) is None

    def get_package(self, package: str) -> str | None:
        """Installs as root, unpacks as anyone else; says what failed."""
        if os.geteuid() == 0:
            return attempt(["apt-get", "install", "--yes", "--no-install-recommends", package])
        return self.unpack(package)

    def unpack(self, package: str) -> str | None:
        """Downloads a package, and what it needs and is missing, into the cache; says what failed."""
        folder = self.cache / "debian"
        folder.mkdir(parents=True, exist_ok=True)
        plan = subprocess.run(
            ["apt-get", "install", "--simulate", "--no-install-recommends", package],
            capture_output=True,
            text=True,
            check=False,
        )
        names = re.findall(r"^Inst (\S+)", plan.stdout, re.MULTILINE) or [package]
        if failed := attempt(["apt-get", "download", *names], folder):
            return failed
        for file in sorted(folder.glob("*.deb")):
            if failed := attempt(["dpkg", "-x", str(file), str(folder)]):
                return failed
            file.unlink()
        return None

    def install_crate(self, rival: Rival) -> None:
        if shutil.which("cargo") is None:
            self.note(rival, "is not installed, and cargo is not here to do it")
            return
        say(f"building {rival.crate} from crates.io")
        root = self.cache / "crates" / rival.crate
        failed = attempt(["cargo", "install", "--quiet", "--locked", "--root", str(root), rival.crate])
        if failed:
            self.note(rival, f"could not be built: {failed}")

    def zig_folder(self, rival: Rival) -> Path:
        """Of this version of the compiler and of the source."""
        source = hashlib.sha256((SOURCES / f"{rival.program}.zig").read_bytes()).hexdigest()
        return self.cache / "zig" / f"{rival.zig}-{source[:16]}"

    def build_zig(self, rival: Rival) -> None:
        """The compiler, of 440 MB, is only kept while it compiles."""
        say(f"building {rival.program}.zig with {rival.zig} from PyPI")
        folder = self.zig_folder(rival)
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
            if failed:
                self.note(rival, f"could not be built: {failed}")
            else:
                Path(temporary, "program").rename(folder / rival.program)

    def libraries(self) -> str:
        folders = sorted({path.parent for path in (self.cache / "debian").rglob("*.so.*")})
        return ":".join(map(str, folders))

    def note(self, rival: Rival, reason: str) -> None:
        self.missing[rival.name] = reason

    def versions(self) -> dict[str, str]:
        return {name: found.version for name, found in sorted(self.found.items())}


def version_of(path: Path, rival: Rival, libraries: str = "") -> str:
    """The first line of what it says about itself that has a version in it."""
    environment = os.environ | {"LC_ALL": "C"} | ({"LD_LIBRARY_PATH": libraries} if libraries else {})
    command = [str(path), *rival.version_arguments]
    done = subprocess.run(command, capture_output=True, env=environment, check=False, stdin=subprocess.DEVNULL)
    text = (done.stdout + b"\n" + done.stderr).decode(errors="replace")
    return next((line.strip()[:80] for line in text.splitlines() if re.search(r"\d+\.\d+", line)), "unknown")


def attempt(command: list[str], folder: Path | None = None) -> str | None:
    """Runs a command; the last line it said if it failed."""
    environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"}
    environment |= {"LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)
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
