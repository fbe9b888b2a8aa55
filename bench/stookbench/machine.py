"""Facts about the machine and the programs: what a sample means nothing without. No names of hosts or directories."""

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
        "cores": cores(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": f"{platform.system()} {platform.release()}",
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", "unknown"),
        "python": platform.python_version(),
        "root": os.geteuid() == 0,
        "load_average": round(os.getloadavg()[0], 2),
    }


def cores() -> int:
    return len(os.sched_getaffinity(0))


def cpu_model(cpuinfo: str) -> str:
    """The first core's; other architectures than x86 name it differently or not at all."""
    names = dict(line.partition(":")[::2] for line in cpuinfo.splitlines() if ":" in line)
    known = {name.strip(): value.strip() for name, value in names.items()}
    return known.get("model name") or known.get("Hardware") or platform.machine()


def stook_version(stook: Path, is_ours: bool) -> str:
    """Version and commit; `+` marks changes that are not committed.

    A program that was not built from this checkout just before is asked for its commit, as that of the checkout may be
    another one.
    """
    said = subprocess.run([stook, "--version"], capture_output=True, text=True, check=False).stdout.strip()
    if re.search(r"\b[0-9a-f]{7,40}\b", said):
        return said
    if not is_ours:
        return f"{said or 'stook, version unknown'} (commit unknown)"
    commit = git("rev-parse", "--short=12", "HEAD")
    changed = "+" if commit and git("--no-optional-locks", "status", "--porcelain") else ""
    return f"{said or 'stook, version unknown'} ({commit or 'commit unknown'}{changed})"


def git(*arguments: str) -> str:
    try:
        command = ["git", "-C", str(REPOSITORY), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
