"""The file sets that the bench makes itself: how many, how deep, and the same every time."""

from __future__ import annotations

import random
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from stookbench import filesets, shapes
from stookbench.pair import Refused
from stookbench.place import Place


class Shapes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.place = Place(self.root / "bench")

    def facts(self, root: Path) -> list[tuple[str, int, bytes]]:
        """Names, times and contents."""
        paths = [root, *sorted(root.rglob("*"))]
        return [
            (str(path.relative_to(root)), path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
            for path in paths
        ]

    def test_the_same_seed_gives_the_same_tree(self) -> None:
        for shape in (shapes.flat, shapes.app):
            with mock.patch.multiple(shapes, APP_DIRECTORIES=50, APP_PACKAGES=10):
                for name, seed in (("a", 7), ("b", 7), ("c", 8)):
                    shape(self.root / f"{shape.__name__}-{name}", 20, seed)
            made = [self.facts(self.root / f"{shape.__name__}-{name}") for name in "abc"]
            self.assertEqual(made[0], made[1])
            self.assertNotEqual(made[0], made[2])

    def test_a_flat_set_is_one_directory_of_small_files(self) -> None:
        shapes.flat(self.root / "flat", 30, 7)
        made = list((self.root / "flat").iterdir())
        self.assertEqual((len(made), {file.stat().st_size for file in made}), (30, {100}))

    def test_the_app_has_the_entries_that_it_is_named_for(self) -> None:
        found = shapes.app_directories(random.Random(filesets.SEED))
        self.assertEqual((len(found), len(set(found))), (4_863, 4_863))
        self.assertEqual(filesets.KINDS["app41k"].files + len(found), 41_209)
        for position, path in enumerate(found[1:], 1):
            self.assertIn(path.parent, found[:position])
        # Files go one level deeper.
        self.assertEqual(max(len(path.parts) for path in found), shapes.APP_DEPTH - 1)
        self.assertGreater(sum(path.name == "node_modules" for path in found), 100)

    def test_a_set_is_made_once_and_again_when_files_are_missing(self) -> None:
        with mock.patch.dict(filesets.KINDS, flat100k=filesets.flat(30)):
            first = filesets.ensure(self.place, "flat100k", Path("/bin/false"))
            self.assertEqual((first.properties.files, first.properties.directories), (30, 1))
            inode = first.path.stat().st_ino
            self.assertEqual(filesets.ensure(self.place, "flat100k", Path("/bin/false")), first)
            self.assertEqual(first.path.stat().st_ino, inode)
            first.sample[0].unlink()
            self.assertEqual(filesets.ensure(self.place, "flat100k", Path("/bin/false")), first)
            self.assertEqual(len(list(first.path.iterdir())), 30)

    def test_a_set_that_is_not_what_its_name_says_is_refused(self) -> None:
        kind = filesets.Kind(3, "law", 1, shapes.flat, {"directories": (2, 2)})
        said = self.assertRaisesRegex(Refused, "directories is 1, not 2 to 2")
        with mock.patch.dict(filesets.KINDS, flat100k=kind), said:
            filesets.ensure(self.place, "flat100k", Path("/bin/false"))


if __name__ == "__main__":
    unittest.main()
