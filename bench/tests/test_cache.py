"""The proofs that caches are hot or cold."""

from __future__ import annotations

import os
import random
import sys
import tempfile
import unittest
from pathlib import Path

from stookbench import cache


class Proofs(unittest.TestCase):
    def test_resident_pages_refute_cold(self) -> None:
        self.assertIsNone(cache.not_cold(0.0, 0, 100_000))
        self.assertIn("1.0% of the sampled pages", cache.not_cold(0.01, 0, 100_000) or "")

    def test_inodes_left_refute_cold(self) -> None:
        self.assertIsNone(cache.not_cold(0.0, 5_000, 100_000))
        self.assertIn("5,001 inodes are still cached", cache.not_cold(0.0, 5_001, 100_000) or "")

    def test_inodes_of_small_trees_prove_nothing(self) -> None:
        self.assertIsNone(cache.not_cold(0.0, 5_000, 2_000))

    def test_hot_needs_nearly_all_pages(self) -> None:
        self.assertIsNone(cache.not_hot(0.99))
        self.assertIn("only 98.9%", cache.not_hot(0.989) or "")


class Residency(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir="/var/tmp")
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
