"""Pairs of mounts: what is left out, what the shell gets, and what the table says of servers and timers."""

from __future__ import annotations

import json
from unittest import mock

from stookbench import mountbench, mounts, table
from stookbench.mountbench import MountBench
from stookbench.mounts import VIEWS
from stookbench.pair import COLD, HOT, WARM, template_names

from .test_measure import SAMPLE, Scene

HELP = 'case "$*" in "mount --help") echo "--cache --offline";; *) for last; do :; done; mkdir -p "$last";; esac'


class Mounts(Scene):
    def setUp(self) -> None:
        super().setUp()
        bench = self.bench
        self.bench = MountBench(bench.place, bench.set_place, bench.programs, bench.rivals, bench.results, 7)
        tree = bench.sets["arc2k"]
        self.bench.file_set = lambda _name: tree  # type: ignore[method-assign]
        (tree.path / "d").mkdir()
        for name in ("a", "d/b"):
            (tree.path / name).write_text(name)
        self.stook(HELP)
        self.place.path("archives").mkdir()
        self.place.path("archives", "arc2k.ratarindex").write_text("")
        mock.patch.object(mountbench, "say").start()

    def test_what_cannot_be_had_is_left_out_and_named(self) -> None:
        del self.bench.rivals.found["dwarfs"]
        self.bench.rivals.missing["dwarfs"] = "is not installed"
        pair, skipped = self.bench.possible(mounts.READ_ONE.on("arc2k", COLD))
        self.assertEqual([side.name for side in pair.rivals], ["tree", "ratarmount", "squashfuse"])
        self.assertEqual(skipped, {"dwarfs": "dwarfs is not installed", "native": "this stook has no `mount --native`"})
        self.assertEqual(self.bench.lacking(mounts.NATIVE.ours), "this stook has no `mount --native`")
        self.assertEqual(self.bench.lacking(mounts.DECODE.rivals[0]), "this stook has no `mount --decode-threads`")

    def test_a_view_is_begun_before_and_ended_after_each_run(self) -> None:
        spec = self.bench.spec(mounts.FIRST_FIND.on("arc2k", HOT))
        ours, ratarmount, tree = spec["sides"]
        mount = str(self.place.path("mount"))
        self.assertEqual(ours["command"][:2], ["find", mount])
        self.assertIn(f"serve {self.root}/stook mount --foreground", ours["prepare"][-1])
        self.assertIn("--index-file", ratarmount["prepare"][-1])
        self.assertEqual(tree["command"][1], str(self.place.path("sets", "arc2k")))
        self.assertNotIn("\nserve ", tree["prepare"][-1])
        self.assertIn(f"umount {mount}", ours["tidy"][-1])
        self.assertIn(f"{self.place.path('sets', 'arc2k')}/d/b", spec["inputs"])

    def test_every_pair_has_a_view_and_a_name_of_its_own(self) -> None:
        pairs = mounts.listed(["arc2k", "arc100k", "names"])
        self.assertEqual(len(pairs), len({pair.name for pair in pairs}))
        self.assertEqual(len(pairs), 2 * 14 + 3 + 2)
        for pair in pairs:
            self.assertTrue({side.view for side in pair.sides} <= VIEWS.keys())
            self.assertIn(pair.state, (HOT, COLD, WARM))
            self.assertNotIn("", [name for side in pair.sides for name in template_names(side.command)])

    def test_answers_of_servers_belong_to_runs(self) -> None:
        scope = {"name": "mount.read", "calls": 2, "total_ns": 10, "histogram": [1], "children": []}
        answer = {"served_s": 0.5, "server_peak_bytes": 7, "timers": {"roots": [scope]}}
        self.bench.served.write_text(json.dumps(answer) + "\n{}\n")
        first, second = self.bench.extras(2)
        self.assertEqual(first["timers"], [{"name": "mount.read", "calls": 2, "total_ns": 10, "children": []}])
        self.assertEqual(second, {})

    def test_a_goal_may_be_about_processor_time_and_a_share_about_waiting(self) -> None:
        pair = mounts.NATIVE.on("arc2k", HOT)
        scopes = [{"name": "wait for a fetch", "calls": 1, "total_ns": 4, "children": []}]
        timers = [{"name": "mount.read", "calls": 1, "total_ns": 10, "children": scopes}]
        self.assertEqual(table.waiting_share(timers), 0.4)
        runs = {
            "native": [{**SAMPLE, "user_s": 1.0, "sys_s": 1.0, "served_s": 0.0, "wall_s": 1.0}],
            "FUSE": [{**SAMPLE, "user_s": 1.0, "sys_s": 1.0, "served_s": 3.0, "wall_s": 1.0}],
        }
        record = {"status": "measured", "sides": [{"side": "native"}, {"side": "FUSE"}]}
        outcome = table.Outcome(record | {"goal": {"also": pair.goal.also}}, runs)
        ((_, _, ours, theirs, ratio, wanted, result, _, _),) = outcome.also()
        self.assertEqual((ours, theirs, wanted, result), ("2.000 s CPU", "FUSE 5.000 s CPU", "0.5", "met"))
        decoded = table.Outcome(record | {"work": "decode"}, {"a": [{"timers": timers}]})
        self.assertIn("40.0%", "".join(table.waiting([decoded])))
        self.assertTrue(ratio.startswith("0.4 "))
