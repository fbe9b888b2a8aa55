"""Outcomes as facts: what counts as the same, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

from stookbench.evidence import Case, show
from stookbench.pair import Refused


class Scene(unittest.TestCase):
    """A small tree and a place for outcomes."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = Path(folder.name)
        names = ("tree", "tree", "archive", "archive/000000.tar", "out", "target", "stdout", "tar", "same-tree")
        self.case = Case(*(root / name for name in names), files=2)
        self.case = replace(self.case, tar=Path(shutil.which("tar") or ""))
        self.case.out.mkdir()
        (self.case.tree / "d").mkdir(parents=True)
        for name in ("a", "d/b"):
            (self.case.tree / name).write_bytes(name.encode())
            os.utime(self.case.tree / name, ns=(1_700_000_000_123_456_789,) * 2)

    def show(self, name: str, said: str = "") -> dict[str, object]:
        self.case.stdout.write_text(said)
        return show(name, self.case)

    def refuse(self, reason: str, name: str, said: str = "") -> None:
        with self.assertRaisesRegex(Refused, reason):
            self.show(name, said)

    def compare_with(self, script: str) -> None:
        """Another program in the place of `stook-same-tree`."""
        self.case.same_tree.write_text(f"#!/bin/sh\n{script}\n")
        self.case.same_tree.chmod(0o755)

    def pack(self, *words: str, volume: str = "volume.tar") -> None:
        subprocess.run([self.case.tar, "-cf", self.case.out / volume, "-C", self.case.tree, *words], check=True)


class Walks(Scene):
    def test_order_prefix_root_and_digits_do_not_matter(self) -> None:
        tree = self.case.tree
        first = self.show("walked", f"4096 1.5 {tree}\n1 17.1234567890 {tree}/a\n3 18.0 {tree}/d/b\n")
        self.assertEqual(first, self.show("walked", "3 18 ./d/b\n1 17.123456789 a\n"))
        self.assertEqual(first["entries"], 2)

    def test_size_time_and_name_matter(self) -> None:
        lines = ("1 2.5 a", "2 2.5 a", "1 2.6 a", "1 2.5 b", "1 2.5 a b  c")
        self.assertEqual(len({self.show("walked", line)["sha256"] for line in lines}), 5)
        self.refuse("is not `SIZE MTIME PATH`", "walked", "what?\n")

    def test_names_alone(self) -> None:
        tree = self.case.tree
        self.assertEqual(self.show("named", f"{tree}\n{tree}/d/\n{tree}/a\n"), self.show("named", "./a\nd\n"))

    def test_counts_agree_in_whatever_way_they_are_printed(self) -> None:
        updated = self.show("updated", '{"type":"summary","members":0,"unchanged":2}\n')
        self.assertEqual(updated, self.show("walk_count", "1 2.5 a\n1 2.5 b\n"))
        ours = self.show("summarised", '{"files": 2, "bytes": 10, "mean": 5.0}\n')
        self.assertEqual(ours, self.show("counted", "2 10 5.00 0.0 5 5\n"))


class Volumes(Scene):
    def test_members_count_in_any_order_and_volume(self) -> None:
        self.pack(".")
        whole = self.show("packed")
        self.assertEqual(whole["members"], 3)
        self.pack("d", "a")
        self.assertEqual(self.show("packed"), whole)
        self.pack("a")
        self.assertNotEqual(self.show("packed"), whole)
        self.pack("d", volume="second.tar")
        self.assertEqual(self.show("packed"), whole)

    def test_what_is_not_the_source_is_refused(self) -> None:
        self.refuse("no volume", "packed")
        self.pack(".")
        (self.case.tree / "a").write_bytes(b"b")
        self.refuse("not equal to the source", "packed")
        self.refuse("check found 1 damages", "checked", '{"type":"summary","members":2,"damages":1}\n')
        self.refuse("no summary", "updated")


class Trees(Scene):
    def test_a_copy_has_as_many_entries_as_the_program_says_that_compares(self) -> None:
        self.compare_with('diff -r "$1" "$2" && test $# = 2 && echo equal: 3 entries')
        shutil.copytree(self.case.tree, self.case.target)
        self.assertEqual(self.show("copied"), {"entries": 3})
        (self.case.target / "a").write_text("b")
        self.refuse("the copy is not the source: ", "copied")

    def test_a_copy_may_be_compared_without_its_times(self) -> None:
        self.compare_with('test "$3 $4" = "--mtime-tolerance-ns 9223372036854775807" && echo equal: 3 entries')
        self.assertEqual(self.show("copied_without_times"), {"entries": 3})

    def test_a_tree_is_gone_when_nothing_has_its_name_and_the_set_is_whole(self) -> None:
        self.assertEqual(self.show("gone"), {"left": 0, "kept": 2})
        self.case.target.symlink_to("nowhere")
        self.refuse("the tree is still there", "gone")
        self.case.target.unlink()
        (self.case.tree / "a").unlink()
        self.refuse("of the file set 1 files are left, of 2", "gone")
