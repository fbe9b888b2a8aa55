"""Facts about the machine and the program: what a sample means nothing without. No names of hosts or directories."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent


def facts() -> dict[str, object]:
    return {
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
        "load_average": round(os.getloadavg()[0], 2),
    }


def cpu_model(cpuinfo: str) -> str:
    """The first core's; other architectures than x86 name it differently or not at all."""
    found = re.search(r"^(?:model name|Hardware)\s*: *(.*)$", cpuinfo, re.MULTILINE)
    return found[1].strip() if found else platform.machine()


def stook_version(stook: Path, is_ours: bool) -> str:
    """Version and commit; `+` marks changes that are not committed.

    A program that was not built from this checkout just before is asked for its commit, as that of the checkout may be
    another one.
    """
    said = output(str(stook), "--version") or "stook, version unknown"
    if re.search(r"\b[0-9a-f]{7,40}\b", said):
        return said
    git = ("git", "--no-optional-locks", "-C", str(REPOSITORY))
    commit = output(*git, "rev-parse", "--short=12", "HEAD") if is_ours else ""
    changed = "+" if commit and output(*git, "status", "--porcelain") else ""
    return f"{said} ({commit or 'commit unknown'}{changed})"


def output(*command: str) -> str:
    """What a program prints; nothing if it fails or is not there."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
