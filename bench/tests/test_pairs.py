"""The declarations: every template can be filled in, names are used once, and the goals are those of the design."""

from __future__ import annotations

import subprocess
import tempfile
import unittest
from pathlib import Path

from stookbench import pairs
from stookbench.filesets import ARC_BOUNDS, KINDS, Properties
from stookbench.pair import COLD, HOT, PLACES, SLOW, words
from stookbench.rivals import BY_NAME

ALL = pairs.SMALL + pairs.FULL + pairs.IN_MEMORY


class Declarations(unittest.TestCase):
    def test_every_name_in_a_template_is_known(self) -> None:
        for pair in ALL:
            self.assertLessEqual(pair.names(), PLACES.keys() | BY_NAME.keys(), pair.name)

    def test_sets_states_and_kinds_are_known(self) -> None:
        for pair in ALL:
            self.assertIn(pair.file_set, KINDS)
            self.assertIn(pair.state, (HOT, COLD, SLOW))
            self.assertIn(pair.reads, ("names", "contents", "volume", "target"))
            self.assertIn(pair.writes, ("nothing", "volume", "tree"))
            self.assertIn(pair.slow, ("tree", "target"))

    def test_names_are_unique_within_a_run(self) -> None:
        for listed in (pairs.SMALL, pairs.FULL, pairs.IN_MEMORY):
            names = [pair.name for pair in listed]
            self.assertEqual(len(names), len(set(names)))
            for pair in listed:
                sides = [side.name for side in pair.sides]
                self.assertEqual(len(sides), len(set(sides)), pair.name)
                self.assertTrue(any(side.counts for side in pair.rivals), pair.name)

    def test_goals_are_those_of_the_design(self) -> None:
        wanted = {
            "walk-arc100k-hot": 0.6,
            "walk-arc100k-cold": 0.8,
            "walk-arc-hot": 0.6,
            "walk-arc-cold": 0.8,
            "update-arc-hot": 1.5,
            "create-arc-hot": 1.0,
            "create-volumes-arc-hot": 0.8,
            "extract-arc-hot": 0.6,
            "check-arc-hot": 0.5,
            "walk-arc20k-slow": 0.05,
            "create-arc20k-slow": 0.05,
            "extract-arc20k-slow": 0.05,
            "remove-arc20k-slow": 0.05,
            "remove-flat200k-hot": 1.0,
            "copy-flat100k-hot": 0.7,
            "summary-arc100k-hot": 0.4,
        }
        goals = {pair.name: pair.goal for pair in pairs.FULL}
        self.assertEqual({name: goals[name].ratio for name in wanted}, wanted)
        self.assertEqual(goals["update-arc-hot"].peak_bytes, 80_000_000)
        self.assertEqual(goals["create-arc-hot"].peak_bytes, 300_000_000)
        self.assertEqual(goals["copy-arc100k-hot"].against, {"cp": 0.5, "cpz": 1.0})
        in_memory = {pair.name: f"{pair.goal}" for pair in pairs.IN_MEMORY}
        self.assertEqual({name for name, goal in in_memory.items() if goal}, {"remove-arc100k-hot"})
        for removing in (f"{goals['remove-arc100k-hot']}", in_memory["remove-arc100k-hot"]):
            self.assertEqual(removing, "0.6 of rm, 1 of rmz, 0.6 of zig")

    def test_rivals_that_goals_name_are_there(self) -> None:
        for pair in ALL:
            self.assertLessEqual(pair.goal.against.keys(), {side.name for side in pair.rivals}, pair.name)

    def test_what_is_cold_comes_after_all_that_is_hot_with_the_same_set(self) -> None:
        for listed in (pairs.SMALL, pairs.FULL):
            for position, pair in enumerate(listed):
                if pair.state == COLD:
                    later = [other.name for other in listed[position:] if other.file_set == pair.file_set]
                    self.assertEqual(later, [pair.name])

    def test_tar_never_writes_to_dev_null(self) -> None:
        for side in (side for pair in ALL for side in pair.sides):
            self.assertNotIn("/dev/null", side.command)

    def test_pairs_are_chosen_by_name_or_work(self) -> None:
        self.assertEqual({pair.work for pair in pairs.chosen(pairs.SMALL, ["walk*"])}, {"walk"})
        self.assertEqual([pair.name for pair in pairs.chosen(pairs.FULL, ["*-arc-cold"])], ["walk-arc-cold"])
        self.assertEqual({pair.work for pair in pairs.chosen(pairs.SMALL, ["check update"])}, {"check", "update"})
        self.assertEqual(pairs.chosen(pairs.FULL, ["nothing"]), [])


class Templates(unittest.TestCase):
    def test_values_with_blanks_and_braces_stay_whole(self) -> None:
        self.assertEqual(
            words("{p} -f '{{size}} {{path}}' {tree}", {"p": "/a b/p", "tree": "/t {x}"}),
            ["/a b/p", "-f", "{size} {path}", "/t {x}"],
        )

    def test_find_gets_its_line_end(self) -> None:
        find = pairs.WALK.rivals[0]
        self.assertEqual(words(find.command, {"find": "find", "tree": "t"})[-1], "%s %T@ %p\\n")

    def test_awk_adds_up_what_find_says_of_regular_files(self) -> None:
        with tempfile.TemporaryDirectory(suffix="a b") as folder:
            for name, size in (("a", 1), ("b", 5_000_000_000), ("c d", 2)):
                with Path(folder, name).open("wb") as file:
                    file.truncate(size)
            command = words(pairs.SUMMARY.rivals[0].command, {"find": "find", "awk": "awk", "tree": folder})
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        files, total, mean, deviation, *ends = said.split()
        self.assertEqual((files, total, mean, ends), ("3", "5000000003", "1666666667.7", ["1", "5000000000"]))
        self.assertAlmostEqual(float(deviation), 2_357_022_602.7, delta=1.0)


class FileSets(unittest.TestCase):
    def test_properties_have_known_answers(self) -> None:
        made = Properties.of([4, 2, 4, 4, 5, 5, 7, 9], 3)
        self.assertEqual((made.bytes, made.mean_bytes, made.deviation_bytes), (40, 5.0, 2.0))
        self.assertEqual((made.smallest_bytes, made.median_bytes, made.largest_bytes), (2, 5, 9))

    def test_a_large_set_that_breaks_the_law_is_named(self) -> None:
        made = Properties.of([21] * 100, 9)
        self.assertEqual(made.violations(KINDS["arc20k"].bounds), [])
        self.assertIn("median_bytes is 21, not 1,700 to 1,870", made.violations(ARC_BOUNDS))


if __name__ == "__main__":
    unittest.main()
