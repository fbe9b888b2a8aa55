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
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import filesets
from .pair import COLD, HOT, MOUNTED, PLACES, SLOW, SSHFS, Pair, Refused, Side, template_names, words
from .place import Place, available_memory, scrub
from .results import MEASURED, NOT_MEASURED, REFUSED, Results, timestamp
from .rivals import BY_NAME, Collection, say
from .storage import Sshd

ROUNDS = 5
RUN = Path(__file__).parent.parent / "run.py"
FUSE, DROP = Path("/dev/fuse"), Path("/proc/sys/vm/drop_caches")
# What refuses a pair: it could not be done, whoever is to blame. Mistakes of this program are not among them.
FAILURES = (Refused, OSError, subprocess.SubprocessError)
FIND = ["sh", "-c", "find \"$1\" -printf '%s' >/dev/null", "sh"]
CAT = ["sh", "-c", 'find "$1" -type f -print0 | xargs -0 -n 1000 -P 2 cat >/dev/null', "sh"]
# A new mount for every run, so slowfs knows nothing of the tree yet. It ends with the process that started it: a shell that
# waits for it.
MOUNT = """mkdir -p {mount}
( {slowfs} {source} {mount} --latency {latency} --ttl {ttl} & wait ) >{log} 2>&1 &
until grep -q '^slowfs: mounted' {log}; do kill -0 $! || {{ cat {log} >&2; exit 1; }}; sleep 0.01; done"""
# sshfs comes back when the mount is there.
MOUNT_SSHFS = "mkdir -p {mount}\n{sshfs} 127.0.0.1:{source} {mount} {options} >{log} 2>&1 || {{ cat {log} >&2; exit 1; }}"
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
    sshd: Sshd | None = None
    held: ExitStack = field(default_factory=ExitStack)
    """Servers, for as long as it lives."""
    sets: dict[str, filesets.FileSet] = field(default_factory=dict)

    def possible(self, pair: Pair) -> tuple[Pair, dict[str, str]]:
        """The pair without the sides that may be left out and cannot be had here, and why; by default none may."""
        return pair, {}

    def measure(self, pair: Pair) -> str:
        """Measures a pair and records it; returns its status."""
        pair, skipped = self.possible(pair)
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
        self.record(
            "pair",
            pair=pair.name,
            work=pair.work,
            set=pair.file_set,
            state=pair.state,
            sides=[{"side": side.name, "command": side.command, "counts": side.counts} for side in pair.sides],
            goal=asdict(pair.goal),
            volume_size=pair.volume_size,
            latency=pair.latency,
            rounds=self.rounds_of(pair),
            budget_s=self.budget_s,
            status=status,
            reason=reason,
            skipped=skipped,
            facts=summary.get("facts"),
            warnings=summary.get("warnings", []),
        )
        return status

    def record(self, kind: str, **facts: object) -> None:
        self.results.add(kind, place=self.place.name, set_place=self.set_place.name, **facts)

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
        if pair.state == SSHFS and self.sshd is None:
            return "no sshd could be started"
        if pair.state in MOUNTED and os.geteuid() != 0 and shutil.which("fusermount3") is None:
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
        spec.write_text(json.dumps(self.spec(pair), default=str))
        try:
            lines = self.stook("bench", "pair", "--json", str(spec)).splitlines()
        finally:
            self.detach()
            self.place.remove(self.place.path("out"))
        _header, *samples, summary = map(json.loads, lines)
        commands = {side.name: side.command for side in pair.sides}
        for sample, extra in zip(samples, self.extras(len(samples)), strict=True):
            side, proof = sample["labels"]["side"], sample["proof"]
            self.record(
                "run",
                pair=pair.name,
                side=side,
                command=commands[side],
                state=pair.state,
                round=sample["round"],
                order=proof.pop("order"),
                wall_s=sample["real_seconds"],
                user_s=sample["user_seconds"],
                sys_s=sample["system_seconds"],
                max_rss_bytes=sample["peak_bytes"],
                read_bytes=proof.pop("read_bytes"),
                files=sample["files"],
                bytes=sample["bytes"],
                proof=proof,
                **extra,
                time=timestamp(),
            )
        found: dict[str, Any] = summary
        return found

    def extras(self, count: int) -> list[dict[str, Any]]:
        """What else is known of so many runs."""
        return [{}] * count

    def stook(self, *arguments: str) -> str:
        """What the program under test prints, its progress shown as it comes; Refused with its error when it fails."""
        command = [str(self.programs.stook), *arguments]
        environment = {"LC_ALL": "C", "PATH": os.environ["PATH"]}
        error: list[str] = []
        with self.place.path("printed").open("w+") as printed:
            with subprocess.Popen(command, stdout=printed, stderr=subprocess.PIPE, text=True, env=environment) as process:
                for line in process.stderr or ():
                    if error or line.startswith("error: "):
                        error.append(line.removeprefix("error: ").strip())
                    else:
                        say(line.rstrip())
            if process.returncode != 0:
                raise Refused("; ".join(error) or f"stook ended with status {process.returncode}")
            printed.seek(0)
            return printed.read()

    def spec(self, pair: Pair) -> dict[str, Any]:
        """What `stook bench pair` is to do; `docs/bench/pair.md` has the fields."""
        tree = self.file_set(pair.file_set)
        archive = self.archive(pair.file_set) if pair.needs_archive else self.place.path("no-archive")
        is_slow = pair.state in MOUNTED
        folder = "mount" if is_slow and pair.slow == "target" else "out"
        places: dict[str, object] = {
            "stook": self.programs.stook,
            "tree": self.place.path("mount") if is_slow and pair.slow == "tree" else tree.path,
            "archive": archive,
            "volume": archive / "000000.tar",
            "volume_size": pair.volume_size,
            "out": self.place.path("out", "files"),
            "target": self.place.path(folder, "target"),
        }
        if places.keys() != PLACES:
            raise ValueError("PLACES and what fills them have become different")
        rivals = {name: found.path for name, found in self.rivals.found.items()}
        values = {name: str(value) for name, value in (places | rivals).items()}
        read = {"volume": values["volume"], "target": values["target"]}.get(pair.reads, str(tree.path))
        warm = {"volume": ["cat"], "contents": CAT}.get(pair.reads, FIND)
        inputs = [read] if pair.reads == "volume" else [f"{read}/{file}" for file in tree.sample]
        return {
            "rounds": self.rounds_of(pair),
            "budget_seconds": self.budget_s,
            "seed": self.seed,
            "state": "as-left" if is_slow else pair.state,
            "inputs": [] if is_slow else inputs,
            "reads_data": pair.reads in ("contents", "volume"),
            "warm": [*warm, read],
            "sync": sorted({str(self.place.directory), str(self.set_place.directory)}),
            "stdout": str(self.place.path("out", "stdout")),
            "evidence_in_first_round": is_slow or pair.writes == "tree",
            "files": tree.properties["files"],
            "bytes": tree.properties["bytes"],
            "sides": [self.side(pair, side, tree, values) for side in pair.sides],
        }

    def side(self, pair: Pair, side: Side, tree: filesets.FileSet, values: dict[str, str]) -> dict[str, object]:
        out, mount = self.place.path("out"), shlex.quote(str(self.place.path("mount")))
        is_slow = pair.state in MOUNTED
        before = words(side.before, values | {"tree": str(tree.path), "target": str(out / "target")})
        prepare = [shlex.join(["rm", "-rf", str(out)]), shlex.join(["mkdir", "-p", values["out"]]), shlex.join(before)]
        if is_slow:
            source = tree.path if pair.slow == "tree" else out
            names = {"slowfs": self.programs.slowfs, "source": source, "log": out / "slowfs"}
            names |= {"latency": pair.latency, "ttl": pair.ttl, "sshfs": values.get("sshfs")}
            quoted = {name: shlex.quote(str(value)) for name, value in names.items()}
            options = shlex.join(self.sshd.options()) if self.sshd else ""
            template = MOUNT_SSHFS if pair.state == SSHFS else MOUNT
            prepare.append(template.format(mount=mount, options=options, **quoted))
        case = {name: values[name] for name in ("archive", "volume", "out", "target", "tar")}
        case |= {"tree": tree.path, "seen": values["tree"], "stdout": out / "stdout"}
        case |= {"same_tree": self.programs.same_tree, "files": tree.properties["files"]}
        # What is written through a slow mount is looked at where it lies: only the command is to be slow.
        case |= {"target": out / "target"} if is_slow else {}
        used = sorted(template_names(side.command) & (self.rivals.found.keys() | {"stook"}))
        return {
            "name": side.name,
            "command": words(side.command, values),
            "prepare": ["sh", "-ec", "\n".join(filter(None, prepare))],
            "tidy": ["sh", "-c", UNMOUNT.format(mount=mount)] if is_slow else [],
            "evidence": [sys.executable, str(RUN), "evidence", side.evidence or pair.evidence, json.dumps(case, default=str)],
            "load": [[values[name], *(BY_NAME[name].version_arguments if name in BY_NAME else ["--version"])] for name in used],
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
        for command in (["umount", "-l"], ["fusermount3", "-uz"]):
            if shutil.which(command[0]):
                subprocess.run([*command, self.place.path("mount")], capture_output=True, check=False)

    def scrub(self, text: str) -> str:
        """The text without this machine's directories."""
        programs = {self.programs.stook.parent: "{programs}"}
        return scrub(text, programs | {self.set_place.directory: "{sets}", self.place.directory: "{dir}"})
