"""Places, the machine, and rivals: what is read from /proc and what is never touched."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from stookbench import hindrance, machine, pairs, place, rivals
from stookbench.pair import COLD, Pair
from stookbench.place import Mount, Place
from stookbench.rivals import RIVALS, Collection, Rival, version_of

MOUNTINFO = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
30 22 0:25 / /shm rw,nosuid - tmpfs tmpfs rw,size=24684084k
41 22 0:31 / /merged rw - overlay overlay rw,lowerdir=/some/where,index=on
42 41 0:32 / /merged/a\\040b rw - xfs /dev/vdb rw
43 42 0:33 / /merged/a\\040b rw - btrfs /dev/vdc rw
"""


class Places(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def test_mounts_are_found_by_path_without_directories(self) -> None:
        self.assertEqual(place.mount_of(Path("/shmem/x"), MOUNTINFO), Mount("ext4", "rw,relatime,discard"))
        self.assertEqual(place.mount_of(Path("/merged/x"), MOUNTINFO), Mount("overlay", "rw,index=on"))
        self.assertEqual(place.mount_of(Path("/x"), ""), Mount("unknown", ""))

    def test_the_mount_on_top_counts(self) -> None:
        self.assertEqual(place.mount_of(Path("/merged/a b/c"), MOUNTINFO), Mount("btrfs", "rw"))

    def test_mount_points_are_known_without_asking_them(self) -> None:
        with mock.patch.object(place, "mountinfo", return_value=MOUNTINFO.replace("/merged", str(self.root.resolve()))):
            self.assertTrue(place.is_mount_point(self.root / "a b"))
            self.assertFalse(place.is_mount_point(self.root / "a"))

    def test_directories_of_this_machine_are_written_as_names(self) -> None:
        known = {self.root: "{dir}", self.root / "sets": "{sets}"}
        said = f"{self.root}/out, {self.root}/sets/arc, {Path.home()}/x"
        self.assertEqual(place.scrub(said, known), "{dir}/out, {sets}/arc, {home}/x")
        with mock.patch.object(Path, "home", return_value=Path("/")):
            self.assertEqual(place.scrub("/bin/tar", {}), "/bin/tar")

    def test_a_directory_with_other_contents_is_refused(self) -> None:
        (self.root / "precious").write_text("mine")
        with self.assertRaisesRegex(SystemExit, "is not empty"):
            Place(self.root)
        self.assertEqual([file.name for file in self.root.iterdir()], ["precious"])

    def test_a_directory_that_someone_else_may_have_put_there_is_refused(self) -> None:
        Place(self.root / "bench")
        for name, target in (("link", "bench"), ("dangling", "nowhere")):
            (self.root / name).symlink_to(target)
            with self.assertRaisesRegex(SystemExit, "is a symbolic link|is no directory"):
                Place(self.root / name)
        other = mock.patch("os.geteuid", return_value=os.geteuid() + 1)
        with other, self.assertRaisesRegex(SystemExit, "belongs to another user"):
            Place(self.root / "bench")

    def test_a_directory_of_ours_is_taken_again(self) -> None:
        Place(self.root / "bench").path("sets").mkdir()
        self.assertTrue(Place(self.root / "bench").path("sets").is_dir())

    def test_a_directory_is_for_one_program_at_a_time(self) -> None:
        (self.root / "other").symlink_to(self.root)
        # All one.
        names = (("bench",), ("bench",), ("other", "bench"))
        held = place.locked(Place(self.root.joinpath(*parts)) for parts in names)
        second = place.locked([Place(self.root / "bench")])
        with held, self.assertRaisesRegex(SystemExit, "another `bench/run.py` is at work in"), second:
            pass
        with place.locked([Place(self.root / "bench")]):
            pass

    def test_what_a_program_started_does_not_keep_the_lock(self) -> None:
        with place.locked([Place(self.root / "bench")]):
            child = subprocess.Popen(["sleep", "60"], stdin=subprocess.DEVNULL)
        try:
            with place.locked([Place(self.root / "bench")]):
                pass
        finally:
            child.kill()
            child.wait()

    def test_nothing_outside_is_removed(self) -> None:
        mine = Place(self.root / "bench")
        for path in (self.root, mine.directory):
            with self.assertRaises(ValueError):
                mine.remove(path)

    def test_trees_links_and_nothing_are_removed(self) -> None:
        mine = Place(self.root / "bench")
        (mine.path("tree", "a b", "c")).mkdir(parents=True)
        mine.path("link").symlink_to(self.root)
        for name in ("tree", "link", "nothing"):
            mine.remove(mine.path(name))
        self.assertEqual([file.name for file in mine.directory.iterdir()], [place.MARKER])
        self.assertTrue(self.root.is_dir())

    def test_lack_of_space_and_inodes_is_said(self) -> None:
        self.assertIsNone(place.lack(10**9, None, 90_000, 9_500))
        self.assertEqual(place.lack(10**9, None, 100_000, 9_500), "needs 1.0 GB, 1.0 GB are free")
        self.assertEqual(place.lack(10**12, 100_000, 100_000, 9_500), "needs 110,000 inodes, 100,000 are free")

    def test_in_memory_some_is_left(self) -> None:
        mine = Place(self.root / "bench")
        with mock.patch.object(place, "available_memory", return_value=place.MEMORY_LEFT_BYTES + 1000):
            mine.mount = Mount("tmpfs", "")
            self.assertEqual(mine.free_bytes(), 1000)
            mine.mount = Mount("ext4", "")
            self.assertGreater(mine.free_bytes(), 1000)


class Hindrances(unittest.TestCase):
    """Of places. Sets and outputs are on one file system, unless a test says that they are on two."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place, self.sets = (Place(Path(folder.name) / name) for name in ("bench", "sets"))
        self.place.mount = self.sets.mount = Mount("ext4", "")
        self.archive = self.place.path("archive")
        self.addCleanup(mock.patch.stopall)
        self.memory = mock.patch.object(hindrance, "available_memory", return_value=10**10).start()
        self.free: dict[Path, int] = {}
        mock.patch.object(Place, "free_inodes", return_value=None).start()
        free = mock.patch.object(Place, "free_bytes", autospec=True).start()
        free.side_effect = lambda place: self.free.get(place.directory, 0)

    def of(self, pair: Pair, sets: Place | None = None) -> str:
        found = hindrance.of_places(pair, self.place, sets or self.place, self.archive)
        return (found or "none").split(",")[0]

    def on_two(self) -> None:
        mock.patch.object(Place, "device", property(lambda place: hash(place.directory))).start()

    def test_space_for_the_set_the_archive_and_the_outputs_counts_what_is_there(self) -> None:
        needs = [self.of(pair.on("arc100k")) for pair in (pairs.WALK, pairs.UPDATE, pairs.CREATE, pairs.EXTRACT)]
        self.assertEqual(needs, [f"needs {number} GB" for number in ("1.0", "2.1", "2.1", "3.1")])
        self.place.path("sets").mkdir()
        self.place.path("sets", "arc100k.json").touch()
        self.assertEqual(self.of(pairs.EXTRACT.on("arc100k")), "needs 2.1 GB")
        self.archive.mkdir()
        self.assertEqual(self.of(pairs.EXTRACT.on("arc100k")), "needs 1.0 GB")

    def test_space_is_looked_at_on_each_file_system(self) -> None:
        self.assertEqual(self.of(pairs.EXTRACT.on("arc100k"), self.sets), "needs 3.1 GB")
        self.on_two()
        self.assertEqual(self.of(pairs.EXTRACT.on("arc100k"), self.sets), "where the sets are: needs 1.0 GB")
        self.free[self.sets.directory] = 2 * 10**9
        self.assertEqual(self.of(pairs.EXTRACT.on("arc100k"), self.sets), "needs 2.1 GB")
        self.assertEqual(self.of(pairs.WALK.on("arc100k"), self.sets), "none")

    def test_nothing_that_is_on_tmpfs_is_ever_cold(self) -> None:
        self.free = {self.sets.directory: 10**12, self.place.directory: 10**12}
        self.sets.mount = Mount("tmpfs", "")
        self.assertEqual(self.of(pairs.WALK.on("arc2k", COLD), self.sets), "tmpfs has no cold state")
        self.assertEqual(self.of(pairs.WALK.on("arc2k", COLD)), "none")
        self.assertEqual(self.of(pairs.EXTRACT.on("arc2k", COLD), self.sets), "none")

    def test_what_is_hot_must_fit_into_memory(self) -> None:
        self.free = {self.sets.directory: 10**12, self.place.directory: 10**12}
        for pair in (pairs.CREATE, pairs.CHECK):
            self.assertEqual(self.of(pair.on("arc")), "needs 12.3 GB of memory to be hot")
        self.assertEqual(self.of(pairs.WALK.on("arc")), "none")
        self.sets.mount = Mount("tmpfs", "")
        self.assertEqual(self.of(pairs.CREATE.on("arc"), self.sets), "none")
        self.memory.return_value = 20 * 10**9
        self.assertEqual(self.of(pairs.CHECK.on("arc")), "none")
        self.assertEqual(self.of(pairs.CHECK.on("arc"), self.sets), "needs 12.3 GB of memory to be hot")


class Machines(unittest.TestCase):
    def test_processor_and_busy_time(self) -> None:
        self.assertEqual(machine.cpu_model("processor\t: 0\nmodel name\t: Fast One\n\nprocessor\t: 1\n"), "Fast One")
        ticks = os.sysconf("SC_CLK_TCK")
        self.assertEqual(machine.busy_seconds("cpu  1 2 3 400 500 6 7 8 0 0\ncpu0 9\n"), 27 / ticks)

    def version(self, said: str, is_ours: bool) -> str:
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(machine, "git", return_value="abcdef012345"):
            stook = Path(folder) / "stook"
            stook.write_text(f"#!/bin/sh\necho '{said}'\n")
            stook.chmod(0o755)
            return machine.stook_version(stook, is_ours)

    def test_the_commit_of_this_checkout_is_that_of_a_program_built_from_it_only(self) -> None:
        self.assertEqual(self.version("stook 0.1.0", is_ours=True), "stook 0.1.0 (abcdef012345+)")
        self.assertEqual(self.version("stook 0.1.0", is_ours=False), "stook 0.1.0 (commit unknown)")
        for is_ours in (True, False):
            self.assertEqual(self.version("stook 0.1.0 (1234567)", is_ours), "stook 0.1.0 (1234567)")

    def test_facts_hold_no_host_name(self) -> None:
        self.assertNotIn(os.uname().nodename, " ".join(map(str, machine.facts())))


class Rivals(unittest.TestCase):
    def test_each_has_one_place_that_it_comes_from(self) -> None:
        for rival in RIVALS:
            self.assertEqual(sum(map(bool, (rival.debian, rival.crate, rival.python, rival.zig))), 1, rival.name)

    def test_versions_of_crates_and_packages_are_fixed(self) -> None:
        for rival in RIVALS:
            fixed = "@" in rival.crate or "==" in rival.python + rival.zig
            self.assertTrue(rival.debian or fixed, rival.name)

    def test_the_first_line_with_a_version_is_taken(self) -> None:
        rival = Rival("x", "sh", debian="x", version_arguments=("-c", "echo; echo hello; echo x 1.2.3 >&2"))
        self.assertEqual(version_of(Path("/bin/sh"), rival), "x 1.2.3")

    def test_what_is_not_here_is_missing_when_nothing_is_installed(self) -> None:
        with tempfile.TemporaryDirectory() as empty:
            rivals = Collection(Path(empty))
            rivals.collect(install=False)
            self.assertEqual(rivals.missing["rmz"], "is not installed")
            self.assertIn("find", rivals.found)


class Installing(unittest.TestCase):
    """Nothing is really installed."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.rivals = Collection(Path(folder.name))
        self.addCleanup(mock.patch.stopall)
        self.commands: list[list[str]] = []
        self.answers: dict[str, list[str | None]] = {}
        mock.patch.object(rivals, "attempt", side_effect=self.attempt).start()
        mock.patch.object(rivals, "say").start()
        mock.patch.object(rivals.shutil, "which", return_value="/usr/bin/it").start()
        mock.patch.object(Collection, "locate", return_value=None).start()
        mock.patch("os.geteuid", return_value=0).start()

    def attempt(self, command: list[str], _folder: Path | None = None) -> str | None:
        self.commands.append(command)
        answers = self.answers.get(command[-1])
        return answers.pop(0) if answers else None

    def collect(self, *names: str) -> list[str]:
        self.rivals.collect(True, names)
        return [command[1] + " " + command[-1] for command in self.commands if command[0] == "apt-get"]

    def test_only_what_is_asked_for_is_installed(self) -> None:
        self.assertEqual(self.collect("bfs", "tree"), ["install bfs"])
        self.assertEqual(len(self.commands), 1)
        self.assertEqual(self.rivals.missing.keys(), {"bfs"})

    def test_lists_of_packages_are_got_once_when_one_is_not_found(self) -> None:
        gone = "E: Unable to locate package"
        self.answers = {"bfs": [gone, None], "squashfuse": [gone, gone]}
        done = self.collect("bfs", "squashfuse", "mksquashfs")
        expected = ["install bfs", "update update", "install bfs", "install squashfs-tools", "install squashfuse"]
        self.assertEqual(done, expected)
        self.assertEqual(self.rivals.missing["squashfuse"], f"could not be installed from Debian: {gone}")

    def test_another_failure_is_no_reason_to_get_lists(self) -> None:
        self.answers = {"bfs": ["E: dpkg was interrupted"]}
        self.assertEqual(self.collect("bfs"), ["install bfs"])

    def test_without_root_lists_are_not_got(self) -> None:
        mock.patch("os.geteuid", return_value=1000).start()
        mock.patch("subprocess.run", return_value=mock.Mock(stdout="")).start()
        self.answers = {"bfs": ["E: Unable to locate package bfs"] * 2}
        self.assertEqual(self.collect("bfs"), ["download bfs"])

    def test_of_what_is_built_by_zig_only_the_program_is_kept(self) -> None:
        rival = rivals.BY_NAME["zig"]
        program = self.rivals.zig_folder(rival) / rival.program

        def build(command: list[str], _folder: Path | None = None) -> None:
            (made,) = [word.removeprefix("-femit-bin=") for word in command if word.startswith("-femit-bin=")] or [""]
            if made:
                Path(made).write_text("built")

        with mock.patch.object(rivals, "attempt", side_effect=build):
            self.rivals.build_zig(rival)
        self.assertEqual([file for file in self.rivals.cache.rglob("*") if file.is_file()], [program])
        self.assertIn("ziglang==", program.parent.name)

    def test_another_source_is_another_program(self) -> None:
        rival, folders = rivals.BY_NAME["zig"], set()
        for text in ("a", "b"):
            Path(self.rivals.cache, f"{rival.program}.zig").write_text(text)
            with mock.patch.object(rivals, "SOURCES", self.rivals.cache):
                folders.add(self.rivals.zig_folder(rival))
        self.assertEqual(len(folders), 2)

    def test_what_cannot_be_compiled_is_missing(self) -> None:
        source = f"{rivals.SOURCES}/deletetree.zig"
        self.answers = {source: ["error: no member named `deleteTree`"]}
        self.collect("zig")
        self.assertEqual(self.rivals.missing["zig"], "could not be built: error: no member named `deleteTree`")
        self.assertEqual([file for file in self.rivals.cache.rglob("*") if file.is_file()], [])


if __name__ == "__main__":
    unittest.main()
