"""Outcomes as facts: what counts as the same, and what is refused."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

from stookbench import evidence
from stookbench.pair import Case, Outcome, Refused

TAR = Path("/usr/bin/tar") if Path("/usr/bin/tar").exists() else Path("/bin/tar")


class Scene(unittest.TestCase):
    """A small tree and a place for outcomes."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.tree, self.out = self.root / "tree", self.root / "out"
        for path in (self.tree / "d", self.out):
            path.mkdir(parents=True)
        for name in ("a", "d/b"):
            (self.tree / name).write_bytes(name.encode())
            os.utime(self.tree / name, ns=(1_700_000_000_123_456_789,) * 2)
        self.case = Case(self.tree, self.root, self.root / "000000.tar", TAR, Path("/bin/false"), files=2)
        self.outcome = Outcome(self.tree, self.out, self.root / "target", self.root / "stdout")

    def said(self, text: str) -> Outcome:
        self.outcome.stdout.write_text(text)
        return self.outcome

    def pack(self, *words: str) -> None:
        subprocess.run([TAR, "-cf", self.out / "volume.tar", "-C", self.tree, *words], check=True)


class Walks(Scene):
    def test_order_prefix_root_and_digits_do_not_matter(self) -> None:
        lines = (f"4096 1.5 {self.tree}", f"1 17.1234567890 {self.tree}/a", f"3 18.0 {self.tree}/d/b", "")
        first = evidence.walked(self.case, self.said("\n".join(lines)))
        second = evidence.walked(self.case, self.said("3 18 ./d/b\n1 17.123456789 a\n"))
        self.assertEqual(first, second)
        self.assertEqual(first["entries"], 2)

    def test_size_time_and_name_matter(self) -> None:
        lines = ("1 2.5 a", "2 2.5 a", "1 2.6 a", "1 2.5 b")
        self.assertEqual(len({evidence.walked(self.case, self.said(line))["sha256"] for line in lines}), 4)

    def test_blanks_in_names_are_part_of_them(self) -> None:
        self.assertEqual(evidence.walked(self.case, self.said("1 2.5 a b  c\n"))["entries"], 1)

    def test_other_lines_are_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "is not `SIZE MTIME PATH`"):
            evidence.walked(self.case, self.said("what?\n"))

    def test_names_alone(self) -> None:
        first = evidence.named(self.case, self.said(f"{self.tree}\n{self.tree}/d/\n{self.tree}/a\n"))
        self.assertEqual(first, evidence.named(self.case, self.said("./a\nd\n")))


class Volumes(Scene):
    def test_members_are_counted_without_the_root_in_any_order(self) -> None:
        self.pack(".")
        first = evidence.packed(self.case, self.outcome)
        self.pack("d", "a")
        self.assertEqual((first, first["members"]), (evidence.packed(self.case, self.outcome), 3))

    def test_members_may_lie_in_several_volumes(self) -> None:
        self.pack(".")
        whole = evidence.packed(self.case, self.outcome)
        self.pack("a")
        subprocess.run([TAR, "-cf", self.out / "second.tar", "-C", self.tree, "d"], check=True)
        self.assertEqual(evidence.packed(self.case, self.outcome), whole)

    def test_a_missing_member_is_a_difference(self) -> None:
        self.pack(".")
        whole = evidence.packed(self.case, self.outcome)
        self.pack("a")
        facts = {"tar": whole, "stook": evidence.packed(self.case, self.outcome)}
        self.assertEqual(evidence.difference(facts), "tar and stook differ in members: 3 and 1")

    def test_changed_contents_are_refused(self) -> None:
        self.pack(".")
        (self.tree / "a").write_bytes(b"b")
        with self.assertRaisesRegex(Refused, "not equal to the source"):
            evidence.packed(self.case, self.outcome)

    def test_no_volume_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "no volume"):
            evidence.packed(self.case, self.outcome)


class Trees(Scene):
    def judge(self, script: str) -> None:
        """Another program in the place of `stook-same-tree`."""
        judge = self.root / "judge"
        judge.write_text(f"#!/bin/sh\n{script}\n")
        judge.chmod(0o755)
        self.case = replace(self.case, same_tree=judge)

    def test_a_copy_has_as_many_entries_as_the_judge_says(self) -> None:
        self.judge('diff -r "$1" "$2" && test $# = 2 && echo equal: 3 entries')
        shutil.copytree(self.tree, self.outcome.target)
        self.assertEqual(evidence.copied(self.case, self.outcome), {"entries": 3})

    def test_a_copy_that_differs_is_refused(self) -> None:
        self.judge("echo '`a`: contents differ'; exit 1")
        with self.assertRaisesRegex(Refused, "the copy is not the source: `a`: contents differ"):
            evidence.copied(self.case, self.outcome)

    def test_a_copy_may_be_judged_without_its_times(self) -> None:
        self.judge('test "$3 $4" = "--mtime-tolerance-ns 9223372036854775807" && echo equal: 3 entries')
        self.assertEqual(evidence.copied_without_times(self.case, self.outcome), {"entries": 3})

    def test_a_tree_is_gone_when_nothing_has_its_name(self) -> None:
        self.assertEqual(evidence.gone(self.case, self.outcome), {"left": 0, "kept": 2})
        self.outcome.target.symlink_to("nowhere")
        with self.assertRaisesRegex(Refused, "the tree is still there"):
            evidence.gone(self.case, self.outcome)

    def test_a_removal_that_reached_the_set_is_refused(self) -> None:
        (self.tree / "a").unlink()
        with self.assertRaisesRegex(Refused, "of the file set 1 files are left, of 2"):
            evidence.gone(self.case, self.outcome)


class Others(Scene):
    def test_a_tree_that_differs_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "the extracted tree is not the source"):
            evidence.unpacked(self.case, self.outcome)

    def test_an_update_without_changes_agrees_with_its_walk(self) -> None:
        summary = '{"type":"summary","members":0,"unchanged":2}\n'
        ours = evidence.updated(self.case, self.said(summary))
        self.assertEqual(ours, evidence.walk_count(self.case, self.said("1 2.5 a\n1 2.5 b\n")))

    def test_a_summary_agrees_with_a_tally(self) -> None:
        ours = evidence.summarised(self.case, self.said('{"files": 2, "bytes": 10, "mean": 5.0}\n'))
        self.assertEqual(ours, evidence.tallied(self.case, self.said("2 10 5.00 0.0 5 5\n")))
        self.assertEqual(ours, {"files": 2, "bytes": 10})

    def test_damage_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "check found 1 damages"):
            evidence.checked(self.case, self.said('{"type":"summary","members":2,"damages":1}\n'))

    def test_output_without_a_summary_is_refused(self) -> None:
        with self.assertRaisesRegex(Refused, "no summary"):
            evidence.updated(self.case, self.said(""))

    def test_agreement_is_no_difference(self) -> None:
        self.assertIsNone(evidence.difference({"a": {"n": 1}, "b": {"n": 1}}))
        self.assertIsNotNone(evidence.difference({"a": {"n": 1}, "b": {"n": 1}, "c": {"n": 1, "m": 2}}))


if __name__ == "__main__":
    unittest.main()
