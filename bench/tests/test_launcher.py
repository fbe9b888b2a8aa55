"""Figures of runs: what the launcher reports, and that this process does not show up in them."""

from __future__ import annotations

import os
import tempfile
import time
import unittest
from pathlib import Path

from stookbench.launcher import Figures, Launcher, compiled
from stookbench.pair import Refused


class Launching(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.program = compiled(Path(cls.folder.name))

    def run_command(self, *command: str, patience_s: float = 60.0) -> Figures:
        folder = Path(self.folder.name)
        self.out, self.errors = folder / "stdout", folder / "stderr"
        return Launcher(self.program, patience_s).run(list(command), self.out, self.errors)

    def test_the_memory_of_this_process_is_not_counted(self) -> None:
        ballast = b"x" * (64 << 20)
        figures = self.run_command("true")
        self.assertEqual(len(ballast), 64 << 20)
        self.assertLess(figures.max_rss_bytes, 8 << 20)

    def test_the_memory_of_the_command_is_counted(self) -> None:
        figures = self.run_command("sh", "-c", "head -c 50000000 /dev/zero | tail -c 40000000 >/dev/null")
        self.assertGreater(figures.max_rss_bytes, 30_000_000)

    def test_wall_time_is_that_of_the_command(self) -> None:
        self.assertTrue(0.2 <= self.run_command("sleep", "0.2").wall_s < 5.0)

    def test_status_and_output_are_kept(self) -> None:
        figures = self.run_command("sh", "-c", "echo said; echo complained >&2; exit 3")
        said = (figures.exit_code, self.out.read_text(), self.errors.read_text())
        self.assertEqual(said, (3, "said\n", "complained\n"))
        self.assertEqual(self.run_command("sh", "-c", "kill -9 $$").exit_code, 137)
        self.assertEqual(self.run_command("/nonexistent/program").exit_code, 127)

    def test_what_takes_too_long_is_killed_and_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "took longer than"):
            self.run_command("sh", "-c", "sleep 60 & echo $!; wait", patience_s=0.3)
        orphan = int(self.out.read_text())
        with self.assertRaises(ProcessLookupError):
            for _ in range(1000):
                os.kill(orphan, 0)
                time.sleep(0.01)
                self.reap(orphan)

    def reap(self, pid: int) -> None:
        """A killed orphan is a zombie until init reaps it, which some containers' init never does."""
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            raise ProcessLookupError from None
        if state == "Z":
            raise ProcessLookupError


if __name__ == "__main__":
    unittest.main()
