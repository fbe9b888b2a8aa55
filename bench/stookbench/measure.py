"""Measures a pair: writes down what `stook bench pair` is to run, and keeps what it printed.

stook makes and proves the states, runs the sides in a random order, and compares their evidence; here is only what a
run needs around it: an empty `out`, an archive, slowfs. Whatever goes wrong in a pair refuses it, and the others go on.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import filesets
from .pair import COLD, HOT, PLACES, SLOW, Pair, Refused, Side, template_names, words
from .place import Place, available_memory, is_mount_point, scrub
from .results import MEASURED, NOT_MEASURED, REFUSED, Results, timestamp
from .rivals import BY_NAME, Collection, say

ROUNDS = 5
LATENCY = "1ms"
RUN = Path(__file__).parent.parent / "run.py"
FUSE, DROP = Path("/dev/fuse"), Path("/proc/sys/vm/drop_caches")
# What refuses a pair: it could not be done, whoever is to blame. Mistakes of this program are not among them.
FAILURES = (Refused, OSError, subprocess.SubprocessError)
FIND = ["sh", "-c", "find \"$1\" -printf '%s' >/dev/null", "sh"]
CAT = ["sh", "-c", 'find "$1" -type f -print0 | xargs -0 -n 1000 -P 2 cat >/dev/null', "sh"]
# A new mount for every run, so slowfs knows nothing of the tree yet. It ends with the process that started it: a shell that
# waits for it.
MOUNT = """( {slowfs} {source} {mount} --latency {latency} & wait ) >{log} 2>&1 &
until grep -q '^slowfs: mounted' {log}; do kill -0 $! || {{ cat {log} >&2; exit 1; }}; sleep 0.01; done"""
UNMOUNT = "umount {mount} 2>/dev/null || fusermount3 -u {mount}"


@dataclass(frozen=True)
class Programs:
    """What was built: the program under test and what the test kit lends."""

    stook: Path
    same_tree: Path
    slowfs: Path | None


@dataclass
class Bench:
    """Where outputs and where sets are, the programs, and what was made for them so far."""

    place: Place
    set_place: Place
    programs: Programs
    rivals: Collection
    results: Results
    seed: int
    rounds: int | None = None
    """Instead of what the pair says."""
    budget_s: float | None = None
    """For each pair."""
    sets: dict[str, filesets.FileSet] = field(default_factory=dict)

    def measure(self, pair: Pair) -> str:
        """Measures a pair and records it; returns its status."""
        status, reason, summary = NOT_MEASURED, self.hindrance(pair), {}
        if reason is None:
            try:
                status, summary = MEASURED, self.run(pair)
            except FAILURES as why:
                status, reason = REFUSED, self.scrub(str(why))
        if status == REFUSED and pair.needs_archive:
            # It may not be what it was.
            self.place.remove(self.archive_path(pair.file_set))
        if reason:
            say(f"{pair.name} on {self.place.name}: {status}: {reason}")
        self.results.add(
            "pair",
            place=self.place.name,
            set_place=self.set_place.name,
            pair=pair.name,
            work=pair.work,
            set=pair.file_set,
            state=pair.state,
            sides=[{"side": side.name, "command": side.command, "counts": side.counts} for side in pair.sides],
            goal=asdict(pair.goal),
            volume_size=pair.volume_size,
            rounds=self.rounds_of(pair),
            budget_s=self.budget_s,
            status=status,
            reason=reason,
            facts=summary.get("facts"),
            warnings=summary.get("warnings", []),
        )
        return status

    def rounds_of(self, pair: Pair) -> int:
        return self.rounds or pair.rounds or ROUNDS

    def hindrance(self, pair: Pair) -> str | None:
        """Why a pair cannot be measured here; that is no failure."""
        missing = self.rivals.missing
        if found := [f"{name} {why}" for name, why in sorted(missing.items()) if name in pair.names() | {"tar"}]:
            return "; ".join(found)
        source = self.place if pair.reads in ("volume", "target") else self.set_place
        if pair.state == COLD and not os.access(DROP, os.W_OK):
            return "needs root"
        if pair.state == COLD and source.in_memory:
            return "tmpfs has no cold state"
        if pair.state == SLOW and not (self.programs.slowfs and os.access(FUSE, os.R_OK | os.W_OK)):
            return f"needs slowfs and {FUSE}"
        if pair.state == SLOW and os.geteuid() != 0 and shutil.which("fusermount3") is None:
            return "needs fusermount3, or root"
        return self.lack(pair, source)

    def lack(self, pair: Pair, source: Place) -> str | None:
        """What is missing of space for the set and what is left beside it, and of memory for what is to be hot."""
        kind = filesets.KINDS[pair.file_set]
        new = 0 if self.set_place.path("sets", f"{pair.file_set}.json").exists() else kind.files
        has_archive = self.archive_path(pair.file_set).exists()
        left = kind.files * ((pair.needs_archive and not has_archive) + (pair.writes != "nothing"))
        if self.set_place.device == self.place.device:
            new, left = 0, new + left
        lacking = self.set_place.lack(new, kind.bytes_per_file) or self.place.lack(left, kind.bytes_per_file)
        wanted = kind.files * kind.bytes_per_file
        is_kept = pair.state == HOT and pair.reads in ("contents", "volume") and not source.in_memory
        if not lacking and is_kept and wanted > available_memory():
            return f"needs {wanted / 1e9:.1f} GB of memory to be hot, {available_memory() / 1e9:.1f} GB are available"
        return lacking

    def run(self, pair: Pair) -> dict[str, Any]:
        """Has the pair measured, records its runs, and returns the summary."""
        spec = self.place.path("spec.json")
        spec.write_text(json.dumps(self.spec(pair)))
        try:
            lines = self.stook("bench", "pair", str(spec)).splitlines()
        finally:
            self.detach()
            self.place.remove(self.place.path("out"))
        *samples, summary = map(json.loads, lines)
        for sample in samples:
            self.results.add("run", place=self.place.name, set_place=self.set_place.name, **run_facts(pair, sample))
        found: dict[str, Any] = summary
        return found

    def stook(self, *arguments: str) -> str:
        """What the program under test prints; Refused with what it says when it fails."""
        environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
        command = [str(self.programs.stook), *arguments]
        error: list[str] = []
        with self.place.path("printed").open("w+") as printed:
            with subprocess.Popen(command, stdout=printed, stderr=subprocess.PIPE, text=True, env=environment) as process:
                assert process.stderr, "it is a pipe"
                for line in process.stderr:
                    if error or line.startswith("error: "):
                        error.append(line.removeprefix("error: ").strip())
                    else:
                        say(line.rstrip())
            printed.seek(0)
            if process.returncode != 0:
                raise Refused("; ".join(error) or f"stook ended with status {process.returncode}")
            return printed.read()

    def spec(self, pair: Pair) -> dict[str, object]:
        """What `stook bench pair` is to do; `docs/bench/pair.md` has the fields."""
        tree = self.file_set(pair.file_set)
        archive = self.archive(pair.file_set) if pair.needs_archive else self.place.path("no-archive")
        volume, target = archive / "000000.tar", self.target(pair)
        inputs = {
            "volume": [volume],
            "target": [target / file for file in tree.sample],
        }.get(pair.reads, [tree.path / file for file in tree.sample])
        warm = {"volume": ["cat", volume], "contents": [*CAT, tree.path], "target": [*FIND, target]}
        is_slow = pair.state == SLOW
        return {
            "rounds": self.rounds_of(pair),
            "budget_seconds": self.budget_s,
            "seed": self.seed,
            "state": "as-left" if is_slow else pair.state,
            "inputs": [] if is_slow else [str(path) for path in inputs],
            "reads_data": pair.reads in ("contents", "volume"),
            "warm": [str(word) for word in warm.get(pair.reads, [*FIND, tree.path])],
            "sync": sorted({str(self.place.directory), str(self.set_place.directory)}),
            "stdout": str(self.place.path("out", "stdout")),
            "evidence_in_first_round": is_slow or pair.writes == "tree",
            "files": tree.properties["files"],
            "bytes": tree.properties["bytes"],
            "sides": [self.side(pair, side, tree, archive) for side in pair.sides],
        }

    def target(self, pair: Pair) -> Path:
        is_slow = pair.state == SLOW and pair.slow == "target"
        return self.place.path("mount", "target") if is_slow else self.place.path("out", "target")

    def side(self, pair: Pair, side: Side, tree: filesets.FileSet, archive: Path) -> dict[str, object]:
        out, mount = self.place.path("out"), self.place.path("mount")
        is_slow = pair.state == SLOW
        seen = mount if is_slow and pair.slow == "tree" else tree.path
        values: dict[str, object] = {
            "stook": self.programs.stook,
            "tree": seen,
            "archive": archive,
            "volume": archive / "000000.tar",
            "volume_size": pair.volume_size,
            "out": out / "files",
            "target": self.target(pair),
        }
        if values.keys() != PLACES.keys():
            raise ValueError("PLACES and what fills them have become different")
        values |= {name: found.path for name, found in self.rivals.found.items()}
        filled = {name: str(value) for name, value in values.items()}
        before = words(side.before, filled | {"tree": str(tree.path), "target": str(out / "target")})
        prepare = [f"rm -rf {quoted(out)} && mkdir -p {quoted(out / 'files')}", shlex.join(before)]
        if is_slow:
            source = tree.path if pair.slow == "tree" else out
            names = {"slowfs": self.programs.slowfs, "source": source, "mount": mount, "log": out / "slowfs"}
            prepare += [f"mkdir -p {quoted(mount)}", MOUNT.format(latency=LATENCY, **{n: quoted(v) for n, v in names.items()})]
        case = {name: filled[name] for name in ("archive", "volume", "out", "target")}
        case |= {"tree": str(tree.path), "seen": str(seen), "stdout": str(out / "stdout")}
        case |= {"tar": str(self.rivals.found["tar"].path), "same_tree": str(self.programs.same_tree)}
        facts = json.dumps(case | {"files": tree.properties["files"]})
        used = sorted(template_names(side.command) & (self.rivals.found.keys() | {"stook"}))
        libraries = [self.rivals.found[name].libraries for name in used if name in self.rivals.found]
        return {
            "name": side.name,
            "command": words(side.command, filled),
            "prepare": ["sh", "-ec", "\n".join(filter(None, prepare))],
            "tidy": ["sh", "-c", UNMOUNT.format(mount=quoted(mount))] if is_slow else [],
            "evidence": [sys.executable, str(RUN), "evidence", side.evidence or pair.evidence, facts],
            "load": [[filled[name], *(BY_NAME[name].version_arguments if name in BY_NAME else ["--version"])] for name in used],
            "environment": {"LD_LIBRARY_PATH": ":".join(libraries)} if any(libraries) else {},
        }

    def file_set(self, name: str) -> filesets.FileSet:
        """The file set, made and recorded when it is first asked for."""
        if name not in self.sets:
            self.release()
            say(f"file set {name} on {self.set_place.name}")
            made = filesets.ensure(self.set_place, name, self.programs.stook)
            self.sets[name] = made
            facts = {"set": name, "seed": filesets.SEED, "properties": made.properties}
            self.results.add("set", place=self.set_place.name, **facts)
        return self.sets[name]

    def archive_path(self, file_set: str) -> Path:
        return self.place.path("archives", file_set)

    def archive(self, file_set: str) -> Path:
        """An archive of the set by the program under test, made when it is first asked for."""
        path = self.archive_path(file_set)
        if not path.exists():
            tree = self.file_set(file_set).path
            self.release()
            # Under another name first, so that a part of one is never taken for it.
            partial = path.with_name(path.name + filesets.PARTIAL)
            partial.parent.mkdir()
            self.stook("create", "--quiet", str(tree), str(partial))
            partial.rename(path)
        return path

    def release(self) -> None:
        """Removes the archives and outcomes, and whatever an interrupted run left."""
        self.detach()
        for name in ("archives", "out", "mount", "printed", "spec.json"):
            self.place.remove(self.place.path(name))
        filesets.remove_partial(self.set_place)

    def detach(self) -> None:
        """Takes away a mount that is still there, lazily, so that it does not matter whether it is dead or in use."""
        mount = self.place.path("mount")
        for command in (["umount", "-l"], ["fusermount3", "-uz"]):
            if is_mount_point(mount) and shutil.which(command[0]):
                subprocess.run([*command, mount], capture_output=True, check=False)

    def scrub(self, text: str) -> str:
        """The text without this machine's directories."""
        programs = {self.programs.stook.parent: "{programs}"}
        return scrub(text, programs | {self.set_place.directory: "{sets}", self.place.directory: "{dir}"})


def quoted(path: object) -> str:
    return shlex.quote(str(path))


def run_facts(pair: Pair, sample: dict[str, Any]) -> dict[str, object]:
    """A sample of `stook bench pair` in the fields of results, which older runs have as well."""
    side = sample["labels"]["side"]
    proof = sample["proof"]
    return {
        "pair": pair.name,
        "side": side,
        "command": next(one.command for one in pair.sides if one.name == side),
        "state": pair.state,
        "round": sample["round"],
        "order": proof.pop("order"),
        "wall_s": sample["real_seconds"],
        "user_s": sample["user_seconds"],
        "sys_s": sample["system_seconds"],
        "max_rss_bytes": sample["peak_bytes"],
        "read_bytes": proof.pop("read_bytes"),
        "files": sample["files"],
        "bytes": sample["bytes"],
        "proof": proof,
        "time": timestamp(),
    }
