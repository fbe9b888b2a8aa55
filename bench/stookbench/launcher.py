"""Runs a command and says what it took; `launcher.c` does the measuring, see there for why.

The launcher is compiled once into the cache. A command runs in a process group of its own, without input, with a
plain environment, and is killed with all its children when it takes too long.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from .pair import Refused

SOURCE = Path(__file__).parent.parent / "launcher.c"
PATIENCE_S = 3600.0


@dataclass(frozen=True)
class Figures:
    """What one run took. Times are of the command and all children it waited for; the peak is that of the largest."""

    wall_s: float
    user_s: float
    sys_s: float
    max_rss_bytes: int
    blocks_in: int
    blocks_out: int
    major_faults: int
    exit_code: int

    @property
    def read_bytes(self) -> int:
        """What came from devices: blocks are 512 bytes."""
        return self.blocks_in * 512


def compiled(cache: Path) -> Path:
    """The launcher, built unless it is there."""
    source = SOURCE.read_bytes()
    program = cache / f"launcher-{hashlib.sha256(source).hexdigest()[:16]}"
    if not program.exists():
        cache.mkdir(parents=True, exist_ok=True)
        partial = program.with_suffix(f".{os.getpid()}")
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", partial, SOURCE], check=True)
        partial.rename(program)
    return program


class Launcher:
    """Runs commands through the compiled launcher."""

    def __init__(self, program: Path, patience_s: float = PATIENCE_S) -> None:
        self.program = program
        self.patience_s = patience_s

    def run(self, command: list[str], stdout: Path, stderr: Path, libraries: str = "") -> Figures:
        """Runs a command to its end."""
        environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
        environment |= {"LD_LIBRARY_PATH": libraries} if libraries else {}
        reading, writing = os.pipe()
        with stdout.open("wb") as out, stderr.open("wb") as errors, os.fdopen(reading, "rb") as report:
            try:
                process = subprocess.Popen(
                    [self.program, str(writing), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=errors,
                    env=environment,
                    pass_fds=(writing,),
                    process_group=0,
                )
            finally:
                os.close(writing)
            wait(process, self.patience_s)
            said = report.read()
        if not said:
            raise Refused("could not be measured: the launcher said nothing")
        return Figures(**json.loads(said))


def wait(process: subprocess.Popen[bytes], patience_s: float) -> None:
    """Waits for the end; kills the group if it takes too long, or when this program is interrupted."""
    try:
        process.wait(patience_s)
    except BaseException as why:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(why, subprocess.TimeoutExpired):
            raise Refused(f"took longer than {patience_s:.0f} s") from None
        raise
