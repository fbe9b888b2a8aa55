"""What is handed to `stook bench pair`, what comes back, and the table that is made of it."""

from __future__ import annotations

import json
import shutil
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

from stookbench import filesets, measure, pairs, results, table, workers
from stookbench.filesets import FileSet
from stookbench.measure import Bench, Programs
from stookbench.pair import COLD, HOT, SLOW, Goal, Pair, template_names
from stookbench.place import Mount, Place, scrub
from stookbench.rivals import BY_NAME, Collection, Found

SAMPLE = {"type": "sample", "real_seconds": 1.0, "user_seconds": 0.5, "system_seconds": 0.25, "peak_bytes": 7_000_000}
RUNS = Path(__file__).parent.parent / "runs"


class Scene(unittest.TestCase):
    """A set of two files, and a shell script in the place of stook."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.place = Place(self.root / "bench")
        # Whatever file system the tests run on.
        self.place.mount = Mount("ext4", "rw")
        tree = self.place.path("sets", "arc2k")
        tree.mkdir(parents=True)
        made = FileSet(tree, {"files": 2, "bytes": 10}, ["a", "d/b"])
        rivals = Collection(self.root / "cache")
        rivals.found = {name: Found(Path(shutil.which("true") or ""), "1.0") for name in BY_NAME}
        programs = Programs(self.root / "stook", Path("/bin/false"), Path("/bin/true"))
        self.bench = Bench(self.place, self.place, programs, rivals, results.Results(self.root / "raw.jsonl"), 7)
        self.bench.sets["arc2k"] = made
        machine = {"cpu": "c", "cores": 2, "memory_bytes": 1, "system": "s", "kernel": "k", "places": [], "seed": 7}
        self.bench.results.add("machine", **machine, stook="1", time="now", rivals={}, load_average=0.1)
        self.addCleanup(mock.patch.stopall)
        mock.patch.object(measure, "say").start()

    def stook(self, script: str) -> None:
        self.bench.programs.stook.write_text(f"#!/bin/sh\n{script}\n")
        self.bench.programs.stook.chmod(0o755)

    def spec(self, pair: Pair) -> dict[str, object]:
        return self.bench.spec(pair)


class Specs(Scene):
    def test_commands_are_filled_and_evidence_can_be_called(self) -> None:
        spec = self.spec(pairs.REMOVE.on("arc2k"))
        side = spec["sides"][0]
        target = self.place.path("out", "target")
        self.assertEqual(side["command"], [str(self.root / "stook"), "remove", str(target)])
        self.assertIn(f"-a {self.place.path('sets', 'arc2k')} {target}", side["prepare"][-1])
        self.assertEqual(spec["inputs"], [str(target / "a"), str(target / "d/b")])
        self.assertEqual((spec["state"], spec["reads_data"]), ("hot", False))
        self.assertTrue(spec["evidence_in_first_round"])
        *_, name, case = side["evidence"]
        self.assertEqual((name, json.loads(case)["files"]), ("gone", 2))

    def test_on_slowfs_one_side_of_the_work_is_slow(self) -> None:
        mount, tree = self.place.path("mount"), self.place.path("sets", "arc2k")
        walk = self.spec(pairs.WALK.on("arc2k", SLOW))
        self.assertIn(str(mount), walk["sides"][0]["command"])
        self.assertIn(f"{tree} {mount} --latency 1ms", walk["sides"][0]["prepare"][-1])
        remove = self.spec(pairs.REMOVE.on("arc2k", SLOW))
        self.assertEqual(remove["sides"][0]["command"][-1], str(mount / "target"))
        self.assertEqual((walk["state"], walk["inputs"]), ("as-left", []))
        self.assertIn("umount", remove["sides"][0]["tidy"][-1])

    def test_a_set_is_made_once_and_its_figures_are_the_last_line(self) -> None:
        self.stook('mkdir -p "$3/d" && for f in $(seq 2000); do : > "$3/d/$f"; done; echo "{}"; echo \'{"files": 2000}\'')
        shutil.rmtree(self.place.path("sets"))
        for _ in range(2):
            made = filesets.ensure(self.place, "arc2k", self.bench.programs.stook)
            self.assertEqual((made.properties, len(made.sample)), ({"files": 2000}, filesets.SAMPLE))
            self.stook("exit 1")

    def test_every_pair_can_be_filled(self) -> None:
        for pair in {pair.name: pair for pair in (*pairs.SMALL, *pairs.FULL, *pairs.POOL)}.values():
            self.bench.sets[pair.file_set] = self.bench.sets["arc2k"]
            self.place.path("archives", pair.file_set).mkdir(parents=True, exist_ok=True)
            json.dumps(self.spec(pair))
            self.assertIn(pair.file_set, filesets.KINDS)


class Measuring(Scene):
    def test_samples_become_runs_and_a_line_of_the_table(self) -> None:
        pair = replace(pairs.CREATE.on("arc2k"), rivals=pairs.CREATE.rivals[:1], goals={HOT: Goal(ratio=0.9)})
        lines = [
            {**SAMPLE, "round": 1, "labels": {"side": side}, "files": 2, "bytes": 10, "proof": {"order": 1, "read_bytes": 0}}
            for side in ("tar", "stook")
        ]
        header = {"type": "header", "command": "bench pair"}
        summary = {"type": "summary", "facts": {"members": 2}, "warnings": ["tar: it is too short"]}
        (self.root / "lines").write_text("\n".join(map(json.dumps, [header, *lines, summary])))
        self.stook(f"echo 'round 1' >&2; cat {self.root}/lines")
        self.assertEqual(self.bench.measure(pair), "measured")
        records = results.read(self.bench.results.path)
        self.assertEqual([record["kind"] for record in records], ["machine", "run", "run", "pair"])
        self.assertEqual(records[1]["wall_s"], 1.0)
        shown = table.report(records)
        self.assertIn("1.000 s (1.000-1.000)  tar 1.000 s (1.000-1.000)  1 (1-1)  0.9   not met: time  7 MB", shown)
        self.assertIn("warning: create-arc2k-hot on ext4: tar: it is too short", shown)

    def test_what_stook_refuses_is_refused_with_its_words_and_without_directories(self) -> None:
        self.stook(f"echo 'error: {self.place.directory}/out is broken' >&2; echo '  more' >&2; exit 1")
        self.assertEqual(self.bench.measure(pairs.WALK.on("arc2k")), "refused")
        records = self.bench.results.records
        self.assertEqual(records[-1]["reason"], "{dir}/out is broken; more")
        self.assertEqual(table.refusals(records), ["walk-arc2k-hot"])
        self.assertIn("refused: {dir}/out is broken", table.report(records))

    def test_what_cannot_be_done_here_is_not_measured(self) -> None:
        self.place.mount = Mount("tmpfs", "rw")
        with mock.patch.object(measure.os, "access", return_value=True):
            self.assertEqual(self.bench.hindrance(pairs.WALK.on("arc2k", COLD)), "tmpfs has no cold state")
        self.bench.rivals.missing["bfs"] = "is not installed"
        self.assertEqual(self.bench.hindrance(pairs.WALK.on("arc2k")), "bfs is not installed")
        with mock.patch.object(Place, "free_bytes", return_value=0):
            self.assertRegex(self.bench.hindrance(pairs.COPY.on("arc2k")) or "", "GB are free")


class Others(unittest.TestCase):
    def test_tables_of_kept_runs_can_be_made_again(self) -> None:
        for raw in RUNS.glob("*/raw.jsonl"):
            self.assertIn("median (least-greatest)", table.report(results.read(raw), as_markdown=True), raw)

    def test_every_name_in_a_template_is_known(self) -> None:
        self.assertEqual(template_names("{a} '{{b}}' {c}"), {"a", "c"})
        for pair in (*pairs.SMALL, *pairs.FULL, *pairs.POOL):
            self.assertLessEqual(pair.names() - measure.PLACES, BY_NAME.keys(), pair.name)

    def test_decisions_of_one_pool_are_drawn(self) -> None:
        line = 'DEBUG number of workers pool="{}" at_microseconds={} from={} to={} why="{}" cpu_percent=1\n'
        text = line.format("walk", 1500, 1, 16, "blocked") + "other\n" + line.format("pack", 9, 1, 2, "blocked")
        taken = workers.steps(text, "walk")
        self.assertEqual(taken, [workers.Step(1.5, 1, 16, "blocked")])
        self.assertIn("1: 1.5 ms, 1 to 16, blocked", workers.drawing(taken))

    def test_a_date_is_used_once(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            raw, runs = Path(folder, "raw"), Path(folder, "runs")
            raw.write_text("{}")
            kept = results.save(raw, "2026-11-21b", "a table", "", {"1 thread": "tree"}, runs)
            self.assertIn("a table", (kept / "README.md").read_text())
            self.assertEqual((kept / "timers-1-thread.txt").read_text(), "tree")
            for date in ("2026-11-21b", "today"):
                with self.assertRaises(SystemExit):
                    results.check(date, runs)

    def test_a_directory_that_is_not_ours_is_refused(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "theirs").write_text("")
            with self.assertRaisesRegex(SystemExit, "is not empty and was not made by this program"):
                Place(Path(folder))
            place = Place(Path(folder, "new"))
            with place.locked(), self.assertRaisesRegex(SystemExit, "another `bench/run.py`"):
                place.locked().__enter__()
            with self.assertRaises(ValueError):
                place.remove(Path(folder, "theirs"))
            self.assertEqual(scrub(f"`{place.directory}/x`", {place.directory: "{dir}"}), "`{dir}/x`")
