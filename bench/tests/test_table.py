"""Tables, kept runs, and pictures of workers, from made-up records."""

from __future__ import annotations

import io
import json
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

from stookbench import save, table, workers
from stookbench.doubts import Record

MACHINE: Record = {
    "kind": "machine",
    "schema": 1,
    "cpu": "A processor",
    "cores": 2,
    "memory_bytes": 25_000_000_000,
    "system": "Debian",
    "kernel": "Linux 6.18",
    "load_average": 0.1,
    "places": [{"filesystem": "ext4", "options": "rw"}],
    "stook": "stook 0.1.0 (abc)",
    "rivals": {"find": "find 4.9", "bfs": "bfs 2.6"},
    "time": "2026-11-21T00:00:00+00:00",
    "seed": 7,
}


def run(pair: str, side: str, wall_s: float, peak: int = 70_000_000) -> Record:
    facts = {"other_cpu_s": 0.0, "read_bytes": 0, "bytes": 1, "state": "hot", "max_rss_bytes": peak}
    return {"kind": "run", "place": "ext4", "pair": pair, "side": side, "wall_s": wall_s} | facts


def pair(name: str, goal: float | None, peak: int | None = None, reason: str | None = None) -> Record:
    sides = [("stook", True), ("find", True), ("bfs", True), ("beside", False)]
    return {
        "kind": "pair",
        "place": "ext4",
        "pair": name,
        "work": name,
        "set": "arc",
        "state": "hot",
        "status": "refused" if reason else "measured",
        "reason": reason,
        "goal": {"ratio": goal, "peak_bytes": peak, "against": {}},
        "volume_size": "",
        "sides": [{"side": side, "command": f"{{{side}}} {{tree}}", "counts": counts} for side, counts in sides],
    }


def records(goal: float | None, peak: int | None = None) -> list[Record]:
    times = {"stook": [1.0, 1.1, 0.9], "find": [4.0, 4.0, 4.0], "bfs": [2.0, 2.0, 2.0], "beside": [0.5, 0.5, 0.5]}
    measured = [run("walk", side, time) for side, all_times in times.items() for time in all_times]
    refused = [run("create", "stook", 0.001), pair("create", 1.0, reason="they differ")]
    return [MACHINE, *measured, pair("walk", goal, peak), *refused]


class Tables(unittest.TestCase):
    def rows(self, goal: float | None, peak: int | None = None) -> list[list[str]]:
        return [row for verdict in table.verdicts(records(goal, peak)) for row in table.rows(verdict)]

    def test_the_goal_is_judged_by_the_fastest_rival_that_counts(self) -> None:
        bfs, find, beside, refused = self.rows(0.6)
        times = ["1.000 s (0.900-1.100)", "bfs 2.000 s (2.000-2.000)", "0.5 (0.45-0.55)"]
        self.assertEqual(bfs[2:], [*times, "0.6", "met", "70 MB", "3"])
        self.assertEqual([row[3].split()[0] for row in (find, beside)], ["find", "beside"])
        self.assertEqual(refused, ["create arc, hot", "ext4", "refused: they differ"])

    def test_a_goal_that_is_missed(self) -> None:
        self.assertEqual(self.rows(0.4)[0][6], "not met: time")
        self.assertEqual(self.rows(0.6, 60_000_000)[0][6:8], ["not met: memory", "70 MB of 60"])

    def test_a_goal_within_the_interval_is_unsure(self) -> None:
        self.assertEqual(self.rows(0.52)[0][6], "met, unsure")

    def test_a_goal_that_names_its_rival_is_judged_beside_it(self) -> None:
        made = records(0.6)
        for record in made:
            record.get("goal", {})["against"] = {"find": 0.2, "beside": 2.5}
        (walk, _) = table.verdicts(made)
        judged = [(row[3].split()[0], *row[5:8]) for row in table.rows(walk)]
        expected = [("bfs", "0.6", "met", "70 MB"), ("find", "0.2", "not met: time", "")]
        self.assertEqual(judged, [*expected, ("beside", "2.5", "met", "")])

    def test_goals_of_older_records_name_no_rivals(self) -> None:
        made = records(0.6)
        for record in made:
            record.get("goal", {}).pop("against", None)
        self.assertEqual(table.rows(table.verdicts(made)[0])[0][5:7], ["0.6", "met"])

    def test_without_a_goal_nothing_is_judged(self) -> None:
        self.assertEqual(self.rows(None)[0][5:8], ["", "", "70 MB"])

    def test_rounds_that_time_was_too_short_for_show(self) -> None:
        made = records(None)
        for wanted, shown in ((3, "3"), (5, "3 of 5")):
            (verdict, _) = table.verdicts([record | {"rounds": wanted} for record in made])
            self.assertEqual([row[-1] for row in table.rows(verdict)], [shown, "", ""])

    def test_sets_that_are_elsewhere_are_named(self) -> None:
        sets = {"filesystem": "tmpfs", "options": "rw,size=1k"}
        machine = MACHINE | {"places": [MACHINE["places"][0] | {"sets": sets}]}
        text = table.report([machine, *(record | {"set_place": "tmpfs"} for record in records(0.6)[1:])])
        self.assertIn("Linux 6.18, sets on tmpfs (rw,size=1k), outputs on ext4 (rw)\n", text)
        self.assertIn("walk arc, hot    tmpfs, ext4  1.000 s", text)

    def test_plain_and_markdown_hold_the_same(self) -> None:
        for text in (table.report(records(0.6)), table.report(records(0.6), as_markdown=True)):
            for wanted in ("0.5 (0.45-0.55)", "refused: they differ", "A processor", "bfs 2.6", "met"):
                self.assertIn(wanted, text)

    def test_a_file_without_pairs_says_so(self) -> None:
        self.assertEqual(table.report([MACHINE]), "no pair was measured")


class Keeping(unittest.TestCase):
    def test_a_kept_run_has_its_raw_results_and_its_table_and_is_never_overwritten(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            raw, runs = Path(name) / "raw", Path(name) / "runs"
            raw.write_text("".join(json.dumps(record) + "\n" for record in records(0.6)))
            folder = save.save(raw, "2026-11-21", runs)
            self.assertEqual((folder / "raw.jsonl").read_text(), raw.read_text())
            self.assertIn("| walk arc, hot |", (folder / "README.md").read_text())
            for refuse in (save.check, lambda *arguments: save.save(raw, *arguments)):
                with self.assertRaisesRegex(SystemExit, "kept already"):
                    refuse("2026-11-21", runs)
                with self.assertRaisesRegex(SystemExit, "not a date"):
                    refuse("../elsewhere", runs)


class Workers(unittest.TestCase):
    def series(self, gauges: list[dict[str, object]]) -> list[workers.Series]:
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump({"gauges": gauges}, file)
            file.flush()
            return workers.read(Path(file.name))

    def test_a_gauge_holds_its_value_until_the_next_sample(self) -> None:
        (one,) = self.series([{"path": ["walk"], "name": "workers", "samples": [[0, 2], [1_000_000_000, 8], [4.0, 8]]}])
        self.assertEqual((one.path, one.at(0.5), one.at(1.0), one.at(-1.0)), ("walk", 2.0, 8.0, 0.0))
        self.assertEqual((one.greatest, one.mean()), (8.0, 6.5))

    def test_other_and_empty_gauges_are_left_out(self) -> None:
        others = {"path": "a", "name": "bytes", "samples": [[0, 1]]}
        self.assertEqual(self.series([others, {"path": "a", "name": "workers", "samples": []}]), [])

    def test_the_plot_has_a_line_for_each_of_a_few_workers(self) -> None:
        text = workers.plot(workers.Series("walk", [(0.0, 1.0), (0.5, 2.0), (1.0, 2.0)]))
        lines = text.splitlines()
        self.assertEqual(lines[0], "walk: at most 2 workers, 1.5 on average, 1 s")
        self.assertEqual(lines[1], "    2 |" + " " * 36 + "#" * 36)
        self.assertEqual(lines[2], "    1 |" + "#" * 72)

    def test_a_gauge_with_one_sample_can_be_drawn(self) -> None:
        one = workers.Series("a <b>", [(0.0, 2.0)])
        self.assertIn("at most 2 workers", workers.plot(one))
        ElementTree.parse(io.StringIO(workers.svg([one, one])))


if __name__ == "__main__":
    unittest.main()
