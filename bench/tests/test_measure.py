"""Whole pairs over a tree of three files: what is measured, what is refused, what is not measured."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from unittest import mock

from stookbench import cache, evidence, filesets, measure, slow, stage, table
from stookbench.doubts import Record
from stookbench.filesets import FileSet, Properties
from stookbench.launcher import Figures, Launcher, compiled
from stookbench.measure import Bench, Programs
from stookbench.pair import COLD, SLOW, Pair, Refused, Side
from stookbench.place import Mount, Place
from stookbench.records import Results, read
from stookbench.rivals import Collection, Found

# In the place of `stook-same-tree`: contents, and how many entries.
SAME_TREE = 'diff -r "$1" "$2" && echo "equal: $(find "$2" | wc -l) entries"'
DONE = Figures(1.0, 0.0, 0.0, 0, 0, 0, 0, 0)
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
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.place = Place(self.root / "bench")
        # Whatever file system the tests run on.
        self.place.mount = Mount("ext4", "rw")
        tree = self.place.path("sets", "arc2k")
        (tree / "d").mkdir(parents=True)
        files = [tree / name for name in ("a", "b", "d/c")]
        for file in files:
            file.write_bytes(b"x" * 5000)
        made = FileSet("arc2k", tree, Properties.of([5000] * 3, 2), files)
        rivals = Collection(self.root / "cache")
        rivals.found = {name: Found(Path(shutil.which(name) or ""), "1.0") for name in ("find", "tar")}
        programs = Programs(Path("/bin/true"), Path("/bin/false"), self.script("same-tree", SAME_TREE), None)
        results = Results(self.root / "results.jsonl")
        results.add("machine", time="now", cpu="c", cores=2, load_average=0.1, seed=7)
        launcher = Launcher(compiled(self.root / "cache"))
        self.bench = Bench(self.place, self.place, programs, rivals, launcher, results, seed=7, sets={"arc2k": made})
        self.addCleanup(mock.patch.stopall)
        mock.patch.object(measure, "say").start()

    def script(self, name: str, text: str) -> Path:
        path = self.root / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
        return path

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

    def test_sets_may_lie_elsewhere(self) -> None:
        elsewhere = Place(self.root / "elsewhere")
        elsewhere.mount = Mount("tmpfs", "rw")
        self.bench.set_place = elsewhere
        record = self.measure(PAIR)
        self.assertEqual((record["status"], record["place"], record["set_place"]), ("measured", "ext4", "tmpfs"))
        self.assertEqual({(run["place"], run["set_place"]) for run in self.runs()}, {("ext4", "tmpfs")})
        self.assertEqual(table.verdicts(self.bench.results.records)[0].places, "tmpfs, ext4")


class Budgets(Scene):
    def rounds(self, budget_s: float, pair: Pair = PAIR) -> int:
        self.bench.budget_s = budget_s
        self.assertEqual(self.measure(pair)["status"], "measured")
        return len(self.runs()) // 2

    def test_a_round_that_takes_all_the_time_is_the_only_one(self) -> None:
        self.assertEqual(self.rounds(0.0), 1)
        record = self.bench.results.records[-1]
        self.assertEqual((record["rounds"], record["budget_s"]), (3, 0.0))

    def test_a_second_round_is_made_though_it_takes_longer_than_the_time(self) -> None:
        trial = measure.Trial(self.bench, PAIR)
        self.bench.budget_s, trial.started = 30.0, time.monotonic() - 29.0
        self.assertEqual([trial.another_round(done, took_s=29.0) for done in (0, 1, 2)], [True, True, False])

    def test_rounds_are_not_more_than_the_pair_wants(self) -> None:
        self.assertEqual(self.rounds(3600.0), 3)

    def test_a_single_round_may_be_asked_for(self) -> None:
        self.bench.rounds = 1
        self.assertEqual(self.rounds(3600.0), 1)

    def test_a_round_that_would_take_too_long_is_not_begun(self) -> None:
        trial = measure.Trial(self.bench, PAIR)
        self.bench.budget_s = 100.0
        self.assertTrue(trial.another_round(2, took_s=90.0))
        self.assertFalse(trial.another_round(2, took_s=110.0))
        self.assertFalse(trial.another_round(3, took_s=0.1))

    def test_on_slowfs_one_round_is_enough(self) -> None:
        trial = measure.Trial(self.bench, replace(PAIR, state=SLOW))
        self.bench.budget_s = 0.0
        self.assertEqual([trial.another_round(done, 9.0) for done in (0, 1)], [True, False])


class Consuming(Scene):
    """Pairs over a copy of the set that is made before every run, and pairs that copy it."""

    COPY = "cp -a {tree} {target}"
    REMOVE = Pair(
        work="remove",
        ours=Side("stook", "rm -rf {target}", before=COPY),
        rivals=(Side("find", "{find} {target} -delete", before=COPY),),
        evidence=evidence.gone,
        reads="target",
        writes="tree",
        rounds=2,
        file_set="arc2k",
    )
    COPYING = Pair(
        work="copy",
        ours=Side("stook", COPY),
        rivals=(Side("cp", "cp -dR --preserve=all {tree} {target}"),),
        evidence=evidence.copied,
        reads="contents",
        writes="tree",
        rounds=2,
        file_set="arc2k",
    )

    def test_a_tree_is_made_anew_for_every_run_and_is_gone_afterwards(self) -> None:
        record = self.measure(self.REMOVE)
        self.assertEqual((record["status"], record["facts"]), ("measured", {"left": 0, "kept": 3}), record["reason"])
        self.assertEqual(len(self.runs()), 4)

    def test_what_is_made_before_is_not_timed(self) -> None:
        slow = f"sh -c 'sleep 0.3; {self.COPY}'"
        self.measure(replace(self.REMOVE, ours=replace(self.REMOVE.ours, before=slow)))
        self.assertLess(max(run["wall_s"] for run in self.runs()), 0.3)

    def test_what_is_not_removed_is_refused(self) -> None:
        record = self.measure(replace(self.REMOVE, ours=replace(self.REMOVE.ours, command="rm -rf {target}/d")))
        self.assertEqual((record["status"], record["reason"]), ("refused", "the tree is still there"))

    def test_removing_what_was_never_made_is_refused(self) -> None:
        record = self.measure(replace(self.REMOVE, ours=replace(self.REMOVE.ours, before="true")))
        self.assertEqual(record["reason"], "before stook nothing was made at `{target}`")

    def test_a_run_that_was_not_hot_is_made_again_over_a_new_tree(self) -> None:
        doubts = ["read too much", None, None, None, None]
        with mock.patch.object(measure.Trial, "not_in_state_after_all", side_effect=lambda *_: doubts.pop(0)):
            self.assertEqual(self.measure(self.REMOVE)["status"], "measured")
        self.assertEqual((doubts, len(self.runs())), ([], 4))

    def test_the_files_of_the_copy_are_those_that_are_to_be_cold(self) -> None:
        asked: list[Path] = []

        def make_cold(files: list[Path], inodes: int, _filesystem: str) -> dict[str, int | float]:
            asked.extend(file for file in files if file.read_bytes())
            self.assertEqual(inodes, 3)
            return {"inodes_after": 0}

        answers = {"make_cold": make_cold, "may_drop": lambda: True, "not_cold_after_all": lambda *_: None}
        with mock.patch.multiple(cache, **answers):
            self.assertEqual(self.measure(replace(self.REMOVE, state=COLD))["status"], "measured")
        expected = {self.place.path("out", "target", name) for name in ("a", "b", "d/c")}
        self.assertEqual((set(asked), len(asked)), (expected, 12))

    def test_a_copy_is_compared_with_its_source(self) -> None:
        record = self.measure(self.COPYING)
        self.assertEqual((record["status"], record["facts"]), ("measured", {"entries": 5}), record["reason"])
        without = replace(self.COPYING.ours, command="sh -c 'cp -a {tree} {target} && rm {target}/a'")
        record = self.measure(replace(self.COPYING, ours=without))
        self.assertRegex(str(record["reason"]), "the copy is not the source: ")

    def test_on_slowfs_the_tree_is_made_outside_and_consumed_inside(self) -> None:
        said: list[str] = []

        @contextmanager
        def mounted(_slowfs: Path, source: Path, mountpoint: Path) -> Iterator[Path]:
            said.append("there" if (source / "target" / "a").exists() else "not there")
            mountpoint.symlink_to(source)
            yield mountpoint
            mountpoint.unlink()

        self.bench.programs = replace(self.bench.programs, slowfs=Path("/bin/true"))
        pair = replace(self.REMOVE, state=SLOW, slow="target", rounds=1)
        with mock.patch.object(stage, "mounted", mounted), mock.patch("os.access", return_value=True):
            record = self.measure(pair)
        self.assertEqual((record["status"], said), ("measured", ["there"] * 2), record["reason"])


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

    def test_what_goes_wrong_in_a_pair_refuses_that_pair(self) -> None:
        failures = {
            "No space left on device: '{dir}/out'": OSError(28, "No space left on device", str(self.place.path("out"))),
            "`sh` ended with status 123": subprocess.CalledProcessError(123, ["/bin/sh", "-c", "x"]),
            "`tar` took longer than 60 s": subprocess.TimeoutExpired([Path("/bin/tar")], 60.0),
            "database is locked": sqlite3.OperationalError("database is locked"),
        }
        for number, (reason, failure) in enumerate(failures.items()):
            with mock.patch.object(Place, "sync", side_effect=failure):
                record = self.measure(replace(PAIR, work=f"walk{number}"))
            self.assertEqual(record["status"], "refused")
            self.assertIn(reason, record["reason"])
        self.assertEqual(self.measure(PAIR)["status"], "measured")

    def test_what_cannot_be_removed_afterwards_does_not_end_the_run(self) -> None:
        with mock.patch.object(Place, "remove", side_effect=OSError("busy")):
            self.refused(PAIR, "busy")
            self.bench.clear()

    def test_what_fails_before_is_told_and_not_what_fails_after(self) -> None:
        side = Side("stook", FIND, before="sh -c 'echo first >&2; exit 1'", after="sh -c 'echo second >&2; exit 1'")
        self.refused(replace(PAIR, ours=side), "`sh` around stook failed: first")

    def test_what_fails_after_a_good_run_is_refused(self) -> None:
        side = Side("stook", FIND, after="sh -c 'exit 1'")
        self.refused(replace(PAIR, ours=side), "`sh` around stook failed: no message")

    def test_an_interruption_is_not_lost_in_what_fails_after(self) -> None:
        side = Side("stook", FIND, after="false")
        interrupted = mock.patch.object(measure.Trial, "execute", side_effect=KeyboardInterrupt)
        with interrupted, self.assertRaises(KeyboardInterrupt):
            self.measure(replace(PAIR, ours=side))
        busy = mock.patch.object(stage.Stage, "__exit__", side_effect=OSError("busy"))
        with interrupted, busy, self.assertRaises(KeyboardInterrupt):
            self.measure(PAIR)

    def test_a_command_that_takes_too_long_is_refused(self) -> None:
        self.bench.launcher = Launcher(self.bench.launcher.program, patience_s=0.2)
        self.refused(replace(PAIR, ours=Side("stook", "sleep 60")), "^stook took longer than 0 s")

    def test_slowfs_that_dies_is_refused_and_its_mount_detached(self) -> None:
        # A file in the place of the mount, which is left when the program ends.
        left = self.root / "left"
        dying = self.script("slowfs", f"touch {left}; echo '{slow.READY}'; exec sleep 0.1")
        self.bench.programs = replace(self.bench.programs, slowfs=dying)
        detached: list[object] = []

        def detach(mountpoint: Path) -> None:
            detached.append(mountpoint)
            left.unlink(missing_ok=True)

        outcomes = [DONE, Refused("tar ended with status 2: not connected")]

        def execute(*_: object) -> Figures:
            time.sleep(0.4)
            if isinstance(outcome := outcomes.pop(0), Refused):
                raise outcome
            return outcome

        mounts = mock.patch.multiple(slow, is_mount_point=lambda _: left.exists(), detach=detach)
        access = mock.patch("os.access", return_value=True)
        with mounts, access, mock.patch.object(measure.Trial, "execute", execute):
            self.refused(replace(PAIR, state=SLOW), "^slowfs died during the run, with status 0$")
            reason = self.measure(replace(PAIR, state=SLOW))["reason"]
        self.assertEqual(reason, "slowfs died during the run, with status 0: tar ended with status 2: not connected")
        self.assertEqual(detached, [self.place.path("mount")] * 4)
        self.assertFalse(left.exists())

    def test_a_dead_mount_is_detached_without_asking_it(self) -> None:
        mounted, commands = [True, True, False, False], []
        with (
            mock.patch.object(slow, "is_mount_point", side_effect=lambda _: mounted.pop(0)),
            mock.patch.object(slow.shutil, "which", return_value="/bin/it"),
            mock.patch("subprocess.run", side_effect=lambda command, **_: commands.append(command)),
        ):
            slow.detach(Path("/m"))
            self.assertEqual(commands, [["umount", "-l", Path("/m")], ["fusermount3", "-uz", Path("/m")]])
            slow.detach(Path("/m"))
        self.assertEqual(len(commands), 2)

    def test_slowfs_that_does_not_mount_is_refused(self) -> None:
        self.bench.programs = replace(self.bench.programs, slowfs=Path("/bin/echo"))
        with mock.patch("os.access", return_value=True):
            self.refused(replace(PAIR, state=SLOW), "slowfs did not mount")


class Making(Scene):
    """Sets and archives: a part of one is never taken for it."""

    def setUp(self) -> None:
        super().setUp()
        stook = self.script("stook", f"mkdir $3 && touch $3/index.db && test ! -e {self.root}/broken")
        self.bench.programs = replace(self.bench.programs, stook=stook)
        self.archived = replace(PAIR, ours=Side("stook", FIND + " -newermt 1970-01-02 -o -path {archive}"))

    def test_an_archive_is_made_once(self) -> None:
        self.assertEqual(self.measure(self.archived)["status"], "measured")
        made = self.place.path("archives", "arc2k").stat()
        self.assertEqual(self.measure(self.archived)["status"], "measured")
        self.assertEqual(self.place.path("archives", "arc2k").stat(), made)

    def test_a_part_of_an_archive_is_not_used(self) -> None:
        (self.root / "broken").touch()
        self.assertIn("the archive of arc2k could not be made", self.measure(self.archived)["reason"])
        self.assertFalse(self.place.path("archives", "arc2k").exists())
        (self.root / "broken").unlink()
        self.assertEqual(self.measure(self.archived)["status"], "measured")

    def test_an_archive_that_a_refused_pair_used_is_not_used_again(self) -> None:
        self.measure(replace(self.archived, ours=Side("stook", "rm {archive}/index.db")))
        self.assertFalse(self.place.path("archives", "arc2k").exists())

    def test_a_part_of_a_set_is_not_used(self) -> None:
        for path in self.place.directory.iterdir():
            self.place.remove(path)
        maker = self.script("maker", f"mkdir $1 && touch $1/a $1/b && test ! -e {self.root}/broken")
        (self.root / "broken").touch()
        with mock.patch.dict(filesets.KINDS, arc2k=filesets.arc(2)):
            with self.assertRaises(Refused):
                filesets.ensure(self.place, "arc2k", maker)
            self.assertEqual([path.name for path in self.place.path("sets").iterdir()], ["arc2k.partial"])
            self.assertEqual(filesets.files_there(self.place, "arc2k"), 0)
            (self.root / "broken").unlink()
            made = filesets.ensure(self.place, "arc2k", maker)
        self.assertEqual(made.properties.files, 2)
        self.assertEqual(sorted(path.name for path in made.sample), ["a", "b"])
        self.assertEqual({path.parent for path in made.sample}, {self.place.path("sets", "arc2k")})

    def test_what_an_interrupted_run_left_is_removed(self) -> None:
        for names in (("sets", "arc.partial", "d"), ("archives", "arc.partial"), ("out", "target")):
            self.place.path(*names).mkdir(parents=True)
        self.bench.release()
        self.assertEqual([path.name for path in self.place.path("sets").iterdir()], ["arc2k"])
        self.assertFalse(self.place.path("archives").exists() or self.place.path("out").exists())


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
        with mock.patch.object(cache, "may_drop", return_value=True):
            self.not_measured(replace(PAIR, state=COLD), "tmpfs has no cold state")

    def test_slow_needs_slowfs(self) -> None:
        self.not_measured(replace(PAIR, state=SLOW), "slowfs is not built")

    def test_slow_needs_a_way_to_mount(self) -> None:
        self.bench.programs = replace(self.bench.programs, slowfs=Path("/bin/true"))
        with mock.patch("os.access", return_value=False):
            self.not_measured(replace(PAIR, state=SLOW), "needs /dev/fuse")
        access, user = mock.patch("os.access", return_value=True), mock.patch("os.geteuid", return_value=1000)
        with access, user, mock.patch("shutil.which", return_value=None):
            self.not_measured(replace(PAIR, state=SLOW), "needs fusermount3, or root")

    def test_space_is_looked_at_first(self) -> None:
        with mock.patch.object(Place, "free_bytes", return_value=1_000_000):
            self.not_measured(replace(PAIR, writes="tree"), "needs 0.0 GB, 0.0 GB are free")


if __name__ == "__main__":
    unittest.main()
