"""A directory seen through `slowfs`: every operation takes a set time, as on a busy network file system.

A new mount for every run, so nothing is known to it. `slowfs SOURCE MOUNTPOINT --latency 1ms` says `slowfs: mounted`
when it is ready, and unmounts on SIGTERM. If it dies its mount stays, and answers every question with an error, so the
kernel's list is asked instead.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .pair import Refused
from .place import is_mount_point

LATENCY = "1ms"
READY = "slowfs: mounted"
PATIENCE_S = 20.0


@contextmanager
def mounted(slowfs: Path, source: Path, mountpoint: Path) -> Iterator[Path]:
    """The source, slow, at the mount point; Refused if slowfs dies meanwhile."""
    detach(mountpoint)
    mountpoint.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [slowfs, source, mountpoint, "--latency", LATENCY],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # An interruption is for us; it must not pull the tree away from under a command.
        process_group=0,
    )
    try:
        wait_until_ready(process)
        if not is_mount_point(mountpoint):
            raise Refused("slowfs says that it is mounted, but it is not")
        try:
            yield mountpoint
        except Refused as why:
            refuse_if_dead(process, f": {why}")
            raise
        refuse_if_dead(process)
    finally:
        stop(process)
        detach(mountpoint)
    if is_mount_point(mountpoint):
        raise Refused("slowfs could not be unmounted")


def refuse_if_dead(process: subprocess.Popen[str], consequence: str = "") -> None:
    if process.poll() is not None:
        raise Refused(f"slowfs died during the run, with status {process.returncode}{consequence}")


def wait_until_ready(process: subprocess.Popen[str]) -> None:
    """Reads what slowfs says until it is ready; a thread goes on reading, so that it never waits for us."""
    ready, said = threading.Event(), []

    def listen() -> None:
        assert process.stdout is not None, "slowfs was started with a pipe"
        with process.stdout as lines:
            for line in lines:
                said.append(line.strip())
                if line.startswith(READY):
                    ready.set()

    threading.Thread(target=listen, daemon=True).start()
    ended = time.monotonic() + PATIENCE_S
    while not ready.wait(0.01):
        if process.poll() is not None or time.monotonic() > ended:
            raise Refused(f"slowfs did not mount: {said[-1] if said else 'it said nothing'}")


def stop(process: subprocess.Popen[str]) -> None:
    """Ends slowfs, which unmounts."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def detach(mountpoint: Path) -> None:
    """Takes away a mount that is still there, lazily, so that it does not matter whether it is dead or in use."""
    for command in (["umount", "-l"], ["fusermount3", "-uz"]):
        if is_mount_point(mountpoint) and shutil.which(command[0]):
            subprocess.run([*command, mountpoint], capture_output=True, check=False)
