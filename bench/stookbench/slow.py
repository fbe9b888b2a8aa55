"""A directory seen through `slowfs`: every operation takes a set time, as on a busy network file system.

A new mount for every run, so nothing is known to it. `slowfs SOURCE MOUNTPOINT --latency 1ms` says `slowfs: mounted`
when it is ready, and unmounts on SIGTERM.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .pair import Refused

LATENCY = "1ms"
READY = "slowfs: mounted"
PATIENCE_S = 20.0


@contextmanager
def mounted(slowfs: Path, source: Path, mountpoint: Path) -> Iterator[Path]:
    """The source, slow, at the mount point."""
    mountpoint.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [slowfs, source, mountpoint, "--latency", LATENCY],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        wait_until_ready(process)
        if not os.path.ismount(mountpoint):
            raise Refused("slowfs says that it is mounted, but it is not")
        yield mountpoint
    finally:
        unmount(process, mountpoint)


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


def unmount(process: subprocess.Popen[str], mountpoint: Path) -> None:
    """Ends slowfs; detaches the mount by force if it is still there."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for command in (["fusermount3", "-uz"], ["umount", "-l"]):
        if os.path.ismount(mountpoint):
            try:
                subprocess.run([*command, mountpoint], capture_output=True, check=False)
            except FileNotFoundError:
                continue
    if os.path.ismount(mountpoint):
        raise Refused("slowfs could not be unmounted")
