"""Whole pairs over a tree of three files: what is measured, what is refused, what is not measured."""

from __future__ import annotations

import shutil
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

from stookbench import cache, evidence, measure, table
from stookbench.doubts import Record
from stookbench.filesets import FileSet, Properties
from stookbench.launcher import Launcher, compiled
from stookbench.measure import Bench, Programs
from stookbench.pair import COLD, SLOW, Pair, Side
from stookbench.place import Place
from stookbench.records import Results, read
from stookbench.rivals import Collection, Found

FIND = "{find} {tree} -printf '%s %T@ %p\\n'"
PAIR = Pair(
    work="walk",
    ours=Side("stook", FIND),
    rivals=(Side("find", FIND),),
    evidence=evidence.walked,
    reads="contents",
    rounds=3,
    file_set="arc2k",
)


class Scene(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.place = Place(self.root / "bench")
        tree = self.place.path("sets", "arc2k")
        (tree / "d").mkdir(parents=True)
        files = [tree / name for name in ("a", "b", "d/c")]
        for file in files:
            file.write_bytes(b"x" * 5000)
        made = FileSet("arc2k", tree, Properties.of([5000] * 3, 2), files)
        rivals = Collection(self.root / "cache")
        rivals.found = {name: Found(Path(shutil.which(name) or ""), "1.0") for name in ("find", "tar")}
        programs = Programs(Path("/bin/true"), Path("/bin/false"), Path("/bin/false"), None)
        results = Results(self.root / "results.jsonl")
        results.add("machine", time="now", cpu="c", cores=2, load_average=0.1, seed=7)
        launcher = Launcher(compiled(self.root / "cache"))
        self.bench = Bench(self.place, programs, rivals, launcher, results, seed=7, sets={"arc2k": made})
        self.addCleanup(mock.patch.stopall)
        mock.patch.object(measure, "say").start()

    def measure(self, pair: Pair) -> Record:
        """The record of the pair."""
        self.bench.measure(pair)
        return self.bench.results.records[-1]

    def runs(self) -> list[Record]:
        return [record for record in self.bench.results.records if record["kind"] == "run"]


class Measuring(Scene):
    def test_sides_that_agree_are_measured_in_every_round(self) -> None:
        record = self.measure(PAIR)
        self.assertEqual((record["status"], record["reason"]), ("measured", None))
        self.assertEqual(record["facts"]["entries"], 4)
        seen = sorted((run["round"], run["side"]) for run in self.runs())
        self.assertEqual(seen, [(number, side) for number in (1, 2, 3) for side in ("find", "stook")])
        self.assertEqual(self.runs()[0]["proof"], {"resident_share": 1.0, "sampled_files": 3})

    def test_raw_results_are_read_back_as_they_were(self) -> None:
        self.measure(PAIR)
        self.assertEqual(read(self.bench.results.path), self.bench.results.records)

    def test_no_directory_of_this_machine_gets_into_results(self) -> None:
        self.measure(PAIR)
        self.measure(replace(PAIR, work="bad", ours=Side("stook", "{find} {tree}/nowhere")))
        self.assertNotIn(str(self.root), self.bench.results.path.read_text())

    def test_the_order_is_random_and_the_same_for_the_same_seed(self) -> None:
        trial = measure.Trial(self.bench, PAIR)
        orders = [[side.name for side in trial.shuffled(number)] for number in range(20)]
        self.assertEqual(orders, [[side.name for side in trial.shuffled(number)] for number in range(20)])
        self.assertEqual(len({tuple(order) for order in orders}), 2)

    def test_before_and_after_surround_every_run(self) -> None:
        log = self.root / "log"
        side = Side("stook", FIND, before=f"sh -c 'echo before >>{log}'", after=f"sh -c 'echo after >>{log}'")
        self.assertEqual(self.measure(replace(PAIR, ours=side))["status"], "measured")
        self.assertEqual(log.read_text(), "before\nafter\n" * 4)


class Refusing(Scene):
    def refused(self, pair: Pair, reason: str) -> None:
        record = self.measure(pair)
        self.assertEqual(record["status"], "refused")
        self.assertRegex(str(record["reason"]), reason)
        self.assertEqual(table.refusals(self.bench.results.records), [pair.name])
        self.assertEqual(table.verdicts(self.bench.results.records)[0].runs, {})

    def test_sides_that_saw_different_trees_are_refused(self) -> None:
        pair = replace(PAIR, ours=Side("stook", FIND.replace("{tree}", "{tree} -not -name a")))
        self.refused(pair, "stook and find differ in entries: 3 and 4")

    def test_a_command_that_fails_is_refused_with_its_message(self) -> None:
        pair = replace(PAIR, ours=Side("stook", "{find} {tree}/nowhere"))
        self.refused(pair, "stook ended with status 1: .*No such file")

    def test_a_command_that_fails_later_is_refused(self) -> None:
        once = f"sh -c 'test ! -e {self.root}/seen && touch {self.root}/seen && exec \"$@\"' sh "
        self.refused(replace(PAIR, ours=Side("stook", once + FIND)), "stook ended with status 1")

    def test_output_that_cannot_be_understood_is_refused(self) -> None:
        self.refused(replace(PAIR, ours=Side("stook", "echo 1 2")), "not `SIZE MTIME PATH`")

    def test_caches_that_were_not_dropped_are_refused(self) -> None:
        with mock.patch.object(cache, "may_drop", return_value=True), mock.patch.object(cache, "drop"):
            self.refused(replace(PAIR, state=COLD), "caches could not be dropped: 100.0% of the sampled pages")

    def test_inputs_that_do_not_stay_cached_are_refused(self) -> None:
        with mock.patch.object(cache, "share_of", return_value=0.5):
            self.refused(PAIR, "do not stay cached: only 50.0%")

    def test_a_hot_walk_that_reads_from_the_device_is_refused(self) -> None:
        pair = replace(PAIR, reads="names")
        with mock.patch.object(measure, "STRAY_BYTES", -1000):
            self.refused(pair, "read 0 bytes from the device although hot")

    def test_slowfs_that_does_not_mount_is_refused(self) -> None:
        self.bench.programs = replace(self.bench.programs, slowfs=Path("/bin/echo"))
        with mock.patch("os.access", return_value=True):
            self.refused(replace(PAIR, state=SLOW), "slowfs did not mount")


class NotMeasuring(Scene):
    def not_measured(self, pair: Pair, reason: str) -> None:
        record = self.measure(pair)
        self.assertEqual((record["status"], record["reason"]), ("not measured", reason))
        self.assertEqual(table.refusals(self.bench.results.records), [])

    def test_a_missing_rival_is_named(self) -> None:
        self.bench.rivals.missing["bfs"] = "is not installed"
        pair = replace(PAIR, rivals=(*PAIR.rivals, Side("bfs", "{bfs} {tree}")))
        self.not_measured(pair, "bfs is not installed")

    def test_cold_needs_root(self) -> None:
        with mock.patch.object(cache, "may_drop", return_value=False):
            self.not_measured(replace(PAIR, state=COLD), "needs root")

    def test_cold_is_nothing_on_tmpfs(self) -> None:
        self.place.mount = replace(self.place.mount, filesystem="tmpfs")
        self.not_measured(replace(PAIR, state=COLD), "nothing is ever cold on tmpfs")

    def test_slow_needs_slowfs(self) -> None:
        self.not_measured(replace(PAIR, state=SLOW), "slowfs is not built")

    def test_space_is_looked_at_first(self) -> None:
        with mock.patch.object(Place, "free_bytes", return_value=1_000_000):
            self.not_measured(replace(PAIR, writes="tree"), "needs 0.0 GB, 0.0 GB are free")


if __name__ == "__main__":
    unittest.main()
