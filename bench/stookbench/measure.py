"""Measures pairs: A B, B A, A B, each round in a random order.

First every side runs once, untimed, and its outcome is turned into facts. If those differ, the pair is refused: a
program that did something else is not faster. Before every timed run the file system is synced and the state of the
caches made and proved. On slowfs, and where trees are written, there is no untimed round, as runs take minutes; the
outcomes of the first timed round are looked at instead. Rounds end when the pair's time is used up.

What goes wrong in a pair refuses that pair, and the others go on. What a run needs around it is in `stage`, what keeps
a pair from being measured in `hindrance`; the tables are in `table`.
"""

from __future__ import annotations

import math
import os
import random
import sqlite3
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from . import cache, filesets, hindrance, slow
from .evidence import difference
from .launcher import PATIENCE_S, Figures, Launcher
from .machine import ProcessorTime
from .pair import COLD, HOT, SLOW, Case, Outcome, Pair, Refused, Side
from .place import Place, scrub
from .records import MEASURED, NOT_MEASURED, REFUSED, Results, pair_facts, timestamp
from .rivals import BY_NAME, Collection, say
from .stage import Stage

# What a hot walk may read from the device: stray blocks, and a hundredth of the inodes at 256 bytes.
STRAY_BYTES = 1 << 20
INODE_BYTES = 256
ROUNDS = 5
# What refuses a pair: it could not be done, whoever is to blame. Mistakes of this program are not among them.
FAILURES = (Refused, OSError, subprocess.SubprocessError, sqlite3.Error)


@dataclass(frozen=True)
class Programs:
    """What was built: the program under test and what the test kit lends."""

    stook: Path
    fileset: Path
    same_tree: Path
    slowfs: Path | None


@dataclass
class Bench:
    """Where outputs and where sets are, the programs, and what was made for them so far."""

    place: Place
    set_place: Place
    programs: Programs
    rivals: Collection
    launcher: Launcher
    results: Results
    seed: int
    rounds: int | None = None
    """Instead of what the pair says."""
    budget_s: float = math.inf
    """For each pair."""
    sets: dict[str, filesets.FileSet] = field(default_factory=dict)
    shown: dict[tuple[str, str], dict[str, object]] = field(default_factory=dict)

    def measure(self, pair: Pair) -> str:
        """Measures a pair and records it; returns its status."""
        status, reason, facts = NOT_MEASURED, None, {}
        try:
            reason = self.hindrance(pair)
            if reason is None:
                status, facts = MEASURED, Trial(self, pair).measure()
        except FAILURES as why:
            if is_interruption(why):
                raise KeyboardInterrupt from why
            status, reason = REFUSED, self.scrub(in_words(why))
        self.tidy(pair, status)
        if reason:
            say(f"{pair.name} on {self.where}: {status}: {reason}")
        common = {"place": self.place.name, "set_place": self.set_place.name, **pair_facts(pair)}
        wanted = {"rounds": self.rounds_of(pair), "budget_s": self.budget_s if math.isfinite(self.budget_s) else None}
        self.results.add("pair", **common, **wanted, status=status, reason=reason, facts=facts)
        return status

    @property
    def where(self) -> str:
        return self.place.name if self.set_place is self.place else f"{self.set_place.name}, {self.place.name}"

    def rounds_of(self, pair: Pair) -> int:
        return self.rounds or pair.rounds or ROUNDS

    def hindrance(self, pair: Pair) -> str | None:
        """Why a pair cannot be measured here; that is no failure."""
        found = hindrance.of_programs(pair, self.rivals.missing, self.programs.slowfs is not None)
        return found or hindrance.of_places(pair, self.place, self.set_place, self.archive_path(pair.file_set))

    def file_set(self, name: str) -> filesets.FileSet:
        """The file set, made and recorded when it is first asked for."""
        if name not in self.sets:
            self.release()
            say(f"file set {name} on {self.set_place.name}")
            made = filesets.ensure(self.set_place, name, self.programs.fileset)
            say(f"  {made.properties}")
            self.sets[name] = made
            self.results.add("set", place=self.set_place.name, set=name, seed=filesets.SEED, **asdict(made.properties))
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
            command: list[str | Path] = [self.programs.stook, "create", tree, partial]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
            if done.returncode != 0:
                raise Refused(f"the archive of {file_set} could not be made: {done.stderr.strip()}")
            partial.rename(path)
        return path

    def tidy(self, pair: Pair, status: str) -> None:
        """Removes the outcome, and an archive that may not be what it was. If that fails, the next pair will say so."""
        doubtful = [self.archive_path(pair.file_set)] if status == REFUSED and pair.needs_archive() else []
        try:
            for path in (self.place.path("out"), *doubtful):
                self.place.remove(path)
        except FAILURES as why:
            say(f"after {pair.name}: {self.scrub(in_words(why))}")

    def clear(self) -> None:
        """Releases all; where that fails, the next pair will say so."""
        try:
            self.release()
        except FAILURES as why:
            say(f"on {self.where}: {self.scrub(in_words(why))}")

    def release(self) -> None:
        """Removes the archives and outcomes, and whatever an interrupted run left."""
        slow.detach(self.place.path("mount"))
        for name in ("archives", "out"):
            self.place.remove(self.place.path(name))
        filesets.remove_partial(self.set_place)

    def scrub(self, text: str) -> str:
        """The text without this machine's directories."""
        programs = {self.programs.stook.parent: "{programs}"}
        return scrub(text, programs | {self.set_place.directory: "{sets}", self.place.directory: "{dir}"})


class Trial:
    """One pair at one place."""

    def __init__(self, bench: Bench, pair: Pair) -> None:
        self.bench, self.pair, self.place = bench, pair, bench.place
        self.source = hindrance.input_place(pair, bench.place, bench.set_place)
        self.tree = bench.file_set(pair.file_set)
        archive = bench.archive(pair.file_set) if pair.needs_archive() else self.place.path("no-archive")
        tar = bench.rivals.found["tar"].path
        files = self.tree.properties.files
        self.case = Case(self.tree.path, archive, archive / "000000.tar", tar, bench.programs.same_tree, files)
        self.rounds = bench.rounds_of(pair)
        self.started = time.monotonic()

    def measure(self) -> dict[str, object]:
        """All rounds; returns the facts that all sides agree in."""
        self.warm_unless_hot()
        facts: dict[str, dict[str, object]] = {}
        if self.pair.is_shown_first:
            facts = {side.name: self.show(side) for side in self.pair.sides}
            self.agree(facts)
        else:
            for side in self.pair.sides:
                self.load_programs(side)
        number, took_s = 0, 0.0
        while self.another_round(number, took_s):
            number, started = number + 1, time.monotonic()
            self.round(number, facts)
            took_s = time.monotonic() - started
            self.agree(facts)
        return facts[self.pair.ours.name]

    def another_round(self, done: int, took_s: float) -> bool:
        """Whether there is a next round: a second one unless the first took all the time alone, others while it lasts.

        On slowfs, where runs differ little, the second is like the others.
        """
        if done == 0 or done >= self.rounds:
            return done < self.rounds
        spent_s = 0.0 if done == 1 and self.pair.state != SLOW else time.monotonic() - self.started
        return spent_s + took_s <= self.bench.budget_s

    def round(self, number: int, facts: dict[str, dict[str, object]]) -> None:
        """One run of every side; adds to the facts what outcomes show, unless that is known."""
        line = []
        for order, side in enumerate(self.shuffled(number), 1):
            record = self.timed_run(side, number, order, facts)
            line.append(f"{side.name} {record['wall_s']:.3f} s")
        say(f"{self.pair.name} on {self.bench.where}, round {number} of {self.rounds}: {', '.join(line)}")

    def shuffled(self, number: int) -> list[Side]:
        sides = list(self.pair.sides)
        random.Random(f"{self.bench.seed} {self.pair.name} {number}").shuffle(sides)
        return sides

    def agree(self, facts: dict[str, dict[str, object]]) -> None:
        if differing := difference(facts):
            raise Refused(differing)

    def show(self, side: Side) -> dict[str, object]:
        """What a side's outcome shows, from an untimed run; the same command need not be run again when cold."""
        command = f"{side.before}; {side.command}; {side.after}".replace("{volume_size}", self.pair.volume_size)
        known = (self.pair.file_set, f"{self.pair.evidence_of(side).__name__}: {command}")
        if known not in self.bench.shown:
            with self.stage(side) as stage:
                self.execute(side, stage, stage.outcome.stdout)
            self.bench.shown[known] = self.look_at(side, stage.outcome)
        return self.bench.shown[known]

    def timed_run(self, side: Side, number: int, order: int, facts: dict[str, dict[str, object]]) -> dict[str, object]:
        """One run, recorded. One that turns out not to have been in the state is made once more, with all around it."""
        for _attempt in range(2):
            with self.stage(side) as stage:
                figures, proof, other = self.run_in_state(side, stage)
            if side.name not in facts:
                facts[side.name] = self.look_at(side, stage.outcome)
            doubt = self.not_in_state_after_all(figures, proof)
            if doubt is None:
                break
            self.warm_unless_hot()
        else:
            raise Refused(f"{side.name}: {doubt}")
        return self.bench.results.add(
            "run",
            place=self.place.name,
            set_place=self.bench.set_place.name,
            pair=self.pair.name,
            side=side.name,
            command=side.command,
            state=self.pair.state,
            round=number,
            order=order,
            **{name: value for name, value in asdict(figures).items() if name not in ("blocks_in", "blocks_out")},
            read_bytes=figures.read_bytes,
            written_bytes=figures.blocks_out * 512,
            other_cpu_s=round(other, 2),
            files=self.tree.properties.files,
            bytes=self.tree.properties.bytes,
            proof=proof,
            time=timestamp(),
        )

    def run_in_state(self, side: Side, stage: Stage) -> tuple[Figures, dict[str, object], float]:
        """Makes the state and runs; returns what is known of the state, too."""
        stdout = Path(os.devnull) if self.pair.is_shown_first else stage.outcome.stdout
        for place in {self.place, self.bench.set_place}:
            place.sync()
        proof = self.make_state(side, stage)
        before = ProcessorTime.now()
        figures = self.execute(side, stage, stdout)
        other = ProcessorTime.now().busy_s - before.busy_s - figures.user_s - figures.sys_s
        if self.pair.state == COLD and self.pair.writes != "tree":
            proof["inodes_loaded"] = cache.inode_objects(self.source.mount.filesystem) - proof["inodes_after"]
        return figures, proof, max(other, 0.0)

    def execute(self, side: Side, stage: Stage, stdout: Path) -> Figures:
        """Runs a side; Refused unless it says that it succeeded."""
        errors = self.place.path("out", "stderr")
        try:
            figures = self.bench.launcher.run(stage.command, stdout, errors, stage.libraries)
        except Refused as why:
            raise Refused(f"{side.name} {why}") from None
        if figures.exit_code != 0:
            said = errors.read_text(errors="replace").strip().splitlines()
            raise Refused(f"{side.name} ended with status {figures.exit_code}: {said[0] if said else 'no message'}")
        return figures

    def look_at(self, side: Side, outcome: Outcome) -> dict[str, object]:
        try:
            return self.pair.evidence_of(side)(self.case, outcome)
        except (OSError, ValueError, KeyError, TypeError) as why:
            raise Refused(f"the outcome of {side.name} cannot be understood: {why}") from why

    def stage(self, side: Side) -> Stage:
        names = self.pair.names()
        rivals = {name: found for name, found in self.bench.rivals.found.items() if name in names}
        slowfs = self.bench.programs.slowfs if self.pair.state == SLOW else None
        return Stage(self.place, self.pair, side, self.case, self.bench.programs.stook, rivals, slowfs)

    def sample(self) -> list[Path]:
        """Files that are hot or cold with the inputs."""
        return [self.case.volume] if self.pair.reads == "volume" else self.tree.sample

    @property
    def inodes(self) -> int:
        """How many inodes are hot or cold with the inputs; that of a volume is none to count."""
        return 0 if self.pair.reads == "volume" else self.tree.properties.files

    def make_state(self, side: Side, stage: Stage) -> dict[str, Any]:
        """Makes the caches hot or cold and returns the proof."""
        if self.pair.state == SLOW:
            return {"mount": "new", "latency": slow.LATENCY}
        if self.pair.state == COLD:
            sample = self.sample()
            if self.pair.reads == "target":
                sample = [stage.outcome.target / file.relative_to(self.tree.path) for file in sample]
            proof = cache.make_cold(sample, self.inodes, self.source.mount.filesystem)
            self.load_programs(side)
            return proof
        if self.pair.reads == "target":
            self.warm(stage.outcome.target)
        if self.pair.reads in ("names", "target"):
            return {"read_bytes_at_most": self.stray_bytes()}
        share = self.warm_unless_hot()
        if doubt := cache.not_hot(share):
            raise Refused(f"the inputs do not stay cached: {doubt}")
        return {"resident_share": round(share, 4), "sampled_files": len(self.sample())}

    def load_programs(self, side: Side) -> None:
        """The tree is to be cold, not the program."""
        for name in self.stage(side).programs():
            arguments = BY_NAME[name].version_arguments if name in BY_NAME else ("--version",)
            path = self.bench.rivals.found[name].path if name in BY_NAME else self.bench.programs.stook
            subprocess.run([path, *arguments], capture_output=True, stdin=subprocess.DEVNULL, check=False)

    def warm_unless_hot(self) -> float:
        """Reads the inputs if they are not in memory; returns what share of the sample is then."""
        if self.pair.state == COLD or self.pair.reads == "target":
            return 0.0
        if self.pair.reads == "names":
            self.warm()
            return 1.0
        share = cache.share_of(self.sample())
        if cache.not_hot(share):
            self.warm()
            share = cache.share_of(self.sample())
        return share

    def warm(self, tree: Path | None = None) -> None:
        """Reads what the pair reads, once."""
        commands = {
            "names": "find \"$1\" -printf '%s' >/dev/null",
            "target": "find \"$1\" -printf '%s' >/dev/null",
            "contents": 'find "$1" -type f -print0 | xargs -0 -n 1000 -P 2 cat >/dev/null',
            "volume": 'cat "$2" >/dev/null',
        }
        inputs = [tree or self.case.tree, self.case.volume]
        command: list[str | Path] = ["sh", "-c", commands[self.pair.reads], "sh", *inputs]
        subprocess.run(command, check=True, env={"LC_ALL": "C", "PATH": os.environ["PATH"]}, timeout=PATIENCE_S)

    def stray_bytes(self) -> int:
        return STRAY_BYTES + self.tree.properties.files * INODE_BYTES // 100

    def not_in_state_after_all(self, figures: Figures, proof: dict[str, Any]) -> str | None:
        """What only the run itself can show."""
        if self.pair.state == HOT and figures.read_bytes > proof.get("read_bytes_at_most", math.inf):
            return f"read {figures.read_bytes:,} bytes from the device although hot"
        if self.pair.state == COLD:
            left, loaded = proof["inodes_after"], proof.get("inodes_loaded")
            filesystem = self.source.mount.filesystem
            return cache.not_cold_after_all(self.inodes, left, loaded, figures.read_bytes, filesystem)
        return None


def is_interruption(why: BaseException | None) -> bool:
    """Whether it only went wrong on the way out."""
    return why is not None and (isinstance(why, KeyboardInterrupt) or is_interruption(why.__context__))


def in_words(why: BaseException) -> str:
    """A failure, for the table."""
    match why:
        case subprocess.TimeoutExpired():
            return f"`{Path(why.cmd[0]).name}` took longer than {why.timeout:.0f} s"
        case subprocess.CalledProcessError():
            return f"`{Path(why.cmd[0]).name}` ended with status {why.returncode}"
    return str(why)
