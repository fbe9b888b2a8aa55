"""The proofs that caches are hot or cold."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from stookbench import cache


class Proofs(unittest.TestCase):
    def after(
        self, left: int, loaded: int | None, read_bytes: int = 10**8, on: str = "ext4", tree: int = 100_000
    ) -> str:
        return cache.not_cold_after_all(tree, left, loaded, read_bytes, on) or "cold"

    def test_resident_pages_refute_cold(self) -> None:
        self.assertIsNone(cache.not_cold(0.009))
        self.assertIn("1.0% of the sampled pages", cache.not_cold(0.01) or "")

    def test_few_inodes_left_are_proof_whatever_the_run_kept_of_those_it_loaded(self) -> None:
        self.assertEqual(self.after(left=5_000, loaded=0), "cold")

    def test_of_many_inodes_left_none_is_of_the_tree_if_the_run_loaded_all_of_it(self) -> None:
        self.assertEqual(self.after(left=1_300_000, loaded=95_000), "cold")
        expected = "5,001 inodes were still cached, and the run loaded only 94,999 of the 100,000 of the tree"
        self.assertEqual(self.after(left=5_001, loaded=94_999), expected)
        self.assertIn("loaded only 0 of", self.after(left=5_001, loaded=-7))

    def test_where_the_run_wrote_a_tree_only_what_was_left_before_counts(self) -> None:
        self.assertEqual(self.after(left=5_000, loaded=None), "cold")
        self.assertEqual(
            self.after(left=5_001, loaded=None), "5,001 inodes were still cached, and the tree has 100,000"
        )

    def test_inodes_of_small_trees_prove_nothing(self) -> None:
        self.assertEqual(self.after(left=5_000, loaded=0, tree=2_000), "cold")

    def test_a_cold_run_reads_the_inodes_from_the_device(self) -> None:
        self.assertEqual(self.after(0, 100_000, read_bytes=12_800_000), "cold")
        expected = "read only 12,799,999 bytes from the device although cold"
        self.assertEqual(self.after(0, 100_000, read_bytes=12_799_999), expected)
        self.assertEqual(self.after(0, 100_000, read_bytes=0, on="nfs4"), "cold")
        self.assertEqual(self.after(0, 0, read_bytes=0, tree=0), "cold")

    def test_hot_needs_nearly_all_pages(self) -> None:
        self.assertIsNone(cache.not_hot(0.99))
        self.assertIn("only 98.9%", cache.not_hot(0.989) or "")


class Dropping(unittest.TestCase):
    """What is counted when; nothing is dropped."""

    def drops(self, counts: list[int]) -> tuple[int, list[int]]:
        """How often was dropped before the inodes of a tree of 100,000 were few, and the counts nobody asked for."""
        with (
            mock.patch.object(cache, "drop") as drop,
            mock.patch.object(cache, "SETTLING_S", 0.0),
            mock.patch.object(cache, "inode_objects", side_effect=lambda _: counts.pop(0)),
        ):
            cache.drop_until_few(100_000, "xfs")
        return drop.call_count, counts

    def test_what_is_being_freed_is_awaited(self) -> None:
        self.assertEqual(self.drops([30_000, 8_000, 100, 100, -1]), (1, [-1]))

    def test_inodes_that_stay_are_dropped_again(self) -> None:
        self.assertEqual(self.drops([8_000, 8_000, 90, 90, -1]), (2, [-1]))

    def test_inodes_of_others_are_not_dropped_for_ever(self) -> None:
        self.assertEqual(self.drops([8_000, 8_000, 8_000, 8_000, -1]), (2, [-1]))

    def test_an_overlay_is_counted_with_what_lies_below(self) -> None:
        slabs = "slabinfo\n# name\novl_inode 5 9 1\nxfs_inode 7 9 1\nshmem_inode_cache 1000 9 1\n"
        with mock.patch.object(Path, "read_text", return_value=slabs):
            self.assertEqual(cache.inode_objects("overlay"), 12)
            self.assertEqual(cache.inode_objects("xfs"), 7)


class Residency(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "file"
        self.file.write_bytes(random.Random(7).randbytes(1 << 20))

    def test_a_file_just_written_is_resident_by_both_calls(self) -> None:
        self.assertEqual(cache.share_of([self.file]), 1.0)
        with self.file.open("rb") as opened:
            pages = (1 << 20) // cache.PAGE
            self.assertEqual(cache.resident_pages(opened.fileno()), (pages, pages))
            self.assertEqual(cache.resident_by_mincore(opened.fileno(), 1 << 20), pages)

    def test_an_empty_file_has_no_pages(self) -> None:
        self.file.write_bytes(b"")
        self.assertEqual(cache.share_of([self.file]), 1.0)

    def test_pages_that_were_dropped_are_seen_as_dropped(self) -> None:
        with self.file.open("rb") as opened:
            os.fsync(opened.fileno())
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            left, pages = cache.resident_pages(opened.fileno())
        if left == pages:
            print("skipped: this file system keeps pages in spite of POSIX_FADV_DONTNEED", file=sys.stderr)
            return
        self.assertLess(left / pages, cache.COLD_AT_MOST)

    def test_counters_are_there(self) -> None:
        counted = cache.counters("ext4")
        self.assertTrue(counted.dentries > 0 and counted.buffer_bytes >= 0, counted)


if __name__ == "__main__":
    unittest.main()
