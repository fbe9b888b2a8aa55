"""The command line: what is looked at before anything runs."""

from __future__ import annotations

import argparse
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import run
from stookbench import save


class Scene(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def options(self, *words: str) -> argparse.Namespace:
        return run.arguments().parse_args(words)


class Measuring(Scene):
    def test_a_date_is_looked_at_before_anything_runs(self) -> None:
        (self.root / "2026-11-21").mkdir()
        kept_in = mock.patch.object(save.check, "__defaults__", (self.root,))
        with kept_in, mock.patch.object(run, "find_programs") as later:
            for date in ("today", "2026-11-21"):
                with self.assertRaises(SystemExit):
                    run.measure(self.options("measure", "--save", date))
            later.assert_not_called()


if __name__ == "__main__":
    unittest.main()
