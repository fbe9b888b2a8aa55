"""Calls: what is on the tree, and what is not; a whole count over a tree of three files."""

from __future__ import annotations

import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from unittest import mock

from stookbench import syscalls, table
from stookbench.pair import Side
from stookbench.rivals import Found
from tests import test_measure

LOG = """\
7 execve("/bin/rm", ["rm", "-rf", "/t/out/target"], 0x7ffd /* 20 vars */) = 0
7 openat(AT_FDCWD</home>, "/etc/ld.so.cache", O_RDONLY|O_CLOEXEC) = 3</etc/ld.so.cache>
7 newfstatat(AT_FDCWD</home>, "/t/out/target", {st_mode=S_IFDIR|0755}, AT_SYMLINK_NOFOLLOW) = 0
7 openat(AT_FDCWD</home>, "/t/out/target/d", O_RDONLY|O_DIRECTORY) = 4</t/out/target/d>
8 getdents64(4</t/out/target/d>,  <unfinished ...>
7 futex(0x7f, FUTEX_WAIT_PRIVATE, 0, NULL <unfinished ...>
8 <... getdents64 resumed>0x55 /* 3 entries */, 32768) = 80
7 <... futex resumed>) = 0
8 unlinkat(4</t/out/target/d>, "x", 0) = -1 ENOENT (No such file or directory)
8 close(4</t/out/target/d (deleted)>) = 0
8 unlinkat(3</t/out>, "target", AT_REMOVEDIR) = 0
8 openat(AT_FDCWD</home>, "/t/out/targets", O_RDONLY) = 5</t/out/targets>
8 openat(3</t/out>, "targets", O_RDONLY) = 5</t/out/targets>
8 --- SIGCHLD {si_signo=SIGCHLD} ---
7 +++ exited with 0 +++
"""


class Logs(unittest.TestCase):
    def test_calls_are_on_the_tree_by_path_or_descriptor(self) -> None:
        found = syscalls.calls(LOG.splitlines(), Path("/t/out/target"))
        on_tree = {"newfstatat": 1, "openat": 1, "getdents64": 1, "unlinkat": 2, "close": 1}
        self.assertEqual(found.on_tree, on_tree)
        self.assertEqual(found.elsewhere, {"execve": 1, "openat": 3, "futex": 1})

    def test_lines_without_a_process_and_other_names_of_the_tree_count(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "real").mkdir()
            Path(folder, "link").symlink_to("real")
            lines = [f'rmdir("{folder}/link/target") = 0', f"close(3<{folder}/real/target>) = 0"]
            found = syscalls.calls(lines, Path(folder, "link", "target"))
        self.assertEqual(found.on_tree, {"rmdir": 1, "close": 1})


class Counting(test_measure.Scene):
    """Programs in the place of strace and of those that are counted."""

    def setUp(self) -> None:
        super().setUp()
        said = 'echo "1 unlinkat(3<$target>, ...) = 0"; echo "1 brk() = 0"; test -e "$target/a" && echo "1 brk() = 0"'
        fake = f'log=$4; shift 5; for target; do :; done; ({said}) >"$log"; exec "$@"'
        mock.patch.object(syscalls, "say").start()
        self.bench.rivals.found["strace"] = Found(self.script("strace", fake), "1.0")
        copy = "cp -a {tree} {target}"
        self.pair = replace(
            syscalls.PAIR,
            ours=Side("stook", "rm -rf {target}", before=copy),
            rivals=(Side("rm", "rm -r {target}", before=copy), Side("bad", "rmdir {target}", before=copy)),
            file_set="arc2k",
        )

    def test_each_program_is_counted_twice_and_recorded(self) -> None:
        syscalls.count(self.bench, self.pair)
        *_, ours, rm, bad = self.bench.results.records
        self.assertEqual([record["side"] for record in (ours, rm, bad)], ["stook", "rm", "bad"])
        self.assertEqual((ours["on_tree"], ours["elsewhere"]), ({"unlinkat": 1}, {"brk": 2}))
        self.assertEqual((ours["empty_on_tree"], ours["empty_elsewhere"]), ({"unlinkat": 1}, {"brk": 1}))
        self.assertEqual((rm["status"], bad["status"]), ("measured", "refused"))
        self.assertIn("bad ended with status 1", bad["reason"])
        self.assertNotIn(str(self.root), self.bench.results.path.read_text())

    def test_what_cannot_be_counted_is_said(self) -> None:
        del self.bench.rivals.found["strace"]
        self.bench.rivals.missing["strace"] = "is not installed"
        with self.assertRaisesRegex(SystemExit, "strace is not installed"):
            syscalls.count(self.bench, self.pair)


class Tables(unittest.TestCase):
    def record(self, side: str, unlinked: int, goal: int | None = None) -> dict[str, object]:
        facts = {"kind": "syscalls", "side": side, "goal": goal, "status": "measured", "reason": None}
        counts = {"on_tree": {"unlinkat": unlinked, "close": 1}, "elsewhere": {"brk": 9, "mmap": 2}}
        empty = {"empty_on_tree": {}, "empty_elsewhere": {"brk": 7, "mmap": 3}}
        return facts | counts | empty | {"set": "app41k", "files": 3, "directories": 1}

    def test_a_column_for_each_program(self) -> None:
        lines = table.call_lines([self.record("stook", 3, goal=5), self.record("rm", 2000)])
        expected = [
            ["calls on app41k (4 entries, 1 of them directories)", "stook", "rm"],
            ["unlinkat", "3", "2,000"],
            ["close", "1", "1"],
            ["all on the tree", "4", "2,001"],
            ["goal", "5: met", ""],
            ["all others", "2", "2"],
        ]
        self.assertEqual(lines, expected)

    def test_a_goal_that_is_missed_and_a_program_that_failed(self) -> None:
        bad = self.record("bad", 1) | {"status": "refused", "reason": "it did not"}
        counted = [self.record("stook", 5, goal=5), bad]
        self.assertEqual(table.call_lines(counted)[-2], ["goal", "5: not met"])
        self.assertEqual(table.call_notes(counted)[-1], "bad: refused: it did not")
        self.assertEqual(table.refusals(counted), ["bad"])
        self.assertIn("5: not met", table.markdown(table.call_lines(counted)))


if __name__ == "__main__":
    unittest.main()
