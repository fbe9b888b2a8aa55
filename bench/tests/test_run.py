"""The command line: what is looked at before anything runs, where things go, what is removed."""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import run
from stookbench import place, save
from stookbench.measure import Bench
from stookbench.place import Mount, Place


class Scene(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.addCleanup(mock.patch.stopall)
        mock.patch.object(run, "MEMORY", self.root / "memory").start()
        mock.patch.object(run, "say").start()
        (self.root / "memory").mkdir()
        # By the name of the place, whatever file system the tests run on.
        mock.patch.object(Mount, "of", staticmethod(self.mount)).start()

    def mount(self, path: Path) -> Mount:
        return Mount("tmpfs" if path.is_relative_to(self.root / "memory") else "xfs", "rw")

    def options(self, *words: str) -> argparse.Namespace:
        return run.arguments().parse_args(words)


class Measuring(Scene):
    def work(self, *words: str) -> list[tuple[str, str, bool]]:
        """Where outputs and sets go, below the root, and whether that is not the same place."""
        found = run.find_work(self.options("measure", *words), [])
        return [(self.name(work.place), self.name(work.set_place), work.is_apart) for work in found]

    def name(self, place: Place) -> str:
        return str(place.directory.relative_to(self.root)).split("/")[0]

    def test_sets_are_where_outputs_are_unless_they_are_put_elsewhere(self) -> None:
        on = ("--on", f"{self.root}/a", "--on", f"{self.root}/b")
        self.assertEqual(self.work(*on), [("a", "a", False), ("b", "b", False)])
        self.assertEqual(self.work(*on, "--sets", f"{self.root}/s"), [("a", "s", True), ("b", "s", True)])
        self.assertEqual(self.work(*on, "--sets", f"{self.root}/b"), [("a", "b", True), ("b", "b", False)])

    def test_memory_has_its_own_sets_unless_the_others_are_in_memory(self) -> None:
        on = ("--full", "--on", f"{self.root}/a")
        self.assertEqual(self.work(*on)[1], ("memory", "memory", False))
        self.assertEqual(self.work(*on, "--sets", f"{self.root}/s")[1], ("memory", "memory", False))
        self.assertEqual(self.work(*on, "--sets", f"{self.root}/memory/s")[1], ("memory", "memory", True))

    def test_a_place_is_described_with_its_sets(self) -> None:
        words = ("measure", "--on", f"{self.root}/a", "--sets", f"{self.root}/memory/s")
        (work,) = run.find_work(self.options(*words), [])
        expected = {"filesystem": "xfs", "options": "rw", "sets": {"filesystem": "tmpfs", "options": "rw"}}
        self.assertEqual(run.place_facts(work), expected)

    def test_sets_in_memory_are_left_only_where_that_was_asked_for(self) -> None:
        for keep_sets in (True, False):
            (work,) = run.find_work(self.options("measure", "--on", f"{self.root}/memory/x"), [])
            sets = work.place.path("sets")
            sets.mkdir(exist_ok=True)
            with run.tidied(mock.Mock(spec=Bench), work, keep_sets):
                pass
            self.assertEqual(sets.exists(), keep_sets)

    def test_rounds_that_are_asked_for_are_not_cut_short(self) -> None:
        budgets = [run.budget(self.options("measure", *words.split())) for words in ("", "--full", "--rounds 3")]
        self.assertEqual(budgets, [run.pairs.SMALL_BUDGET_S, run.pairs.FULL_BUDGET_S, math.inf])
        self.assertEqual(run.budget(self.options("measure", "--rounds", "3", "--budget", "9")), 9.0)

    def test_a_date_is_looked_at_before_anything_runs(self) -> None:
        (self.root / "2026-11-21").mkdir()
        kept_in = mock.patch.object(save.check, "__defaults__", (self.root,))
        with kept_in, mock.patch.object(run, "find_programs") as later:
            for date in ("today", "2026-11-21"):
                with self.assertRaises(SystemExit):
                    run.measure(self.options("measure", "--save", date))
            later.assert_not_called()


    def test_a_second_run_at_a_place_or_with_its_sets_is_refused(self) -> None:
        held = place.locked([Place(self.root / name) for name in ("place", "sets")])
        self.enterContext(held)
        for words in (("--on", "place"), ("--on", "other", "--sets", "sets"), ("--on", "sets")):
            paths = [word if word.startswith("-") else f"{self.root}/{word}" for word in words]
            later = mock.patch.object(run, "Collection")
            with mock.patch.object(run, "find_programs"), later as collection:
                with self.assertRaisesRegex(SystemExit, "is at work in"):
                    run.measure(self.options("measure", *paths))
                collection.return_value.collect.assert_not_called()


class Printing(unittest.TestCase):
    def test_a_reader_may_stop_early(self) -> None:
        command = f"{sys.executable} {run.__file__} pairs --full"
        for reader in ("head -n 1", "true"):
            words = ["bash", "-c", f"set -o pipefail; {command} | {reader}"]
            done = subprocess.run(words, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))


class Cleaning(Scene):
    def test_of_sets_elsewhere_only_the_sets_are_removed(self) -> None:
        for name in ("a", "b"):
            for below in ("sets", "archives"):
                Place(self.root / name).path(below).mkdir()
        run.remove_sets(self.options("clean", "--sets", f"{self.root}/a", "--on", f"{self.root}/b"))
        left = sorted(str(path.relative_to(self.root)) for path in self.root.glob("?/*") if path.is_dir())
        self.assertEqual(left, ["a/archives"])

    def test_cleaning_sets_elsewhere_leaves_the_default_place_alone(self) -> None:
        with mock.patch.object(run, "default_place", return_value=self.root / "b"):
            Place(self.root / "b").path("sets").mkdir()
            run.remove_sets(self.options("clean", "--sets", f"{self.root}/a"))
            self.assertTrue((self.root / "b" / "sets").exists())
            run.remove_sets(self.options("clean"))
            self.assertFalse((self.root / "b" / "sets").exists())

    def test_sets_that_are_used_are_not_removed(self) -> None:
        used = Place(self.root / "a")
        used.path("sets").mkdir()
        with used.locked(), self.assertRaisesRegex(SystemExit, "is at work in"):
            run.remove_sets(self.options("clean", "--sets", f"{self.root}/a"))
        self.assertTrue(used.path("sets").exists())


if __name__ == "__main__":
    unittest.main()
