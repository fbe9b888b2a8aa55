#!/usr/bin/env python3
"""Measures stook against its rivals. `make bench` and `make bench-full` call `measure`; see `bench/README.md`.

  run.py measure [--full | --pool | --mount] [--pairs PATTERN] [--on DIR] [--sets DIR] [--rounds N] [--save DATE]
  run.py table RESULTS.jsonl [--markdown]     the table again, from raw results
  run.py rivals                               installs the rivals and lists their versions
  run.py pairs [--full]                       lists the pairs and their commands
  run.py workers PRINTED POOL                 draws a pool's decisions, from what -vvv printed, as SVG
  run.py clean [--on DIR] [--sets DIR]        removes the file sets

Exit codes: 0 done, 1 a pair was refused or something failed, 2 wrong usage, 130 interrupted. A goal that is not met is
a result, not a failure.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from stookbench import evidence, machine, mounts, pairs, results, storage, table, workers
from stookbench.measure import Bench, Programs
from stookbench.mountbench import MountBench
from stookbench.pair import SSHFS, Pair, Refused
from stookbench.place import Mount, Place, scrub
from stookbench.results import Results, timestamp
from stookbench.rivals import BY_NAME, Collection, cache_directory, say

MEMORY = Path("/dev/shm")
DEFAULT = Path(f"/var/tmp/stook-bench-{os.geteuid()}")


def main() -> int:
    options = arguments().parse_args()
    try:
        status = int(options.command(options))
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads has read enough. Without a place to go, what is left would be complained about at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench/run.py", description="Measures stook against its rivals.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    measure_arguments(commands.add_parser("measure", help="measure pairs and print the table"))
    again = commands.add_parser("table", help="print the table of raw results")
    again.add_argument("results", type=Path)
    again.add_argument("--markdown", action="store_true")
    again.add_argument("--save", metavar="DATE", help="keep these results under bench/runs/DATE")
    again.set_defaults(command=print_table)
    commands.add_parser("rivals", help="install the rivals, list versions").set_defaults(command=list_rivals)
    listing = commands.add_parser("pairs", help="list the pairs")
    listing.add_argument("--full", action="store_true")
    listing.add_argument("--pool", action="store_true")
    listing.add_argument("--mount", action="store_true")
    listing.add_argument("--set", action="append")
    listing.set_defaults(command=list_pairs)
    drawn = commands.add_parser("workers", help="draw a pool's decisions, from what -vvv printed, as SVG")
    drawn.add_argument("printed", type=Path)
    drawn.add_argument("pool", help="such as walk, pack, extract")
    drawn.set_defaults(command=draw_workers)
    clean = commands.add_parser("clean", help="remove the file sets")
    for option in ("--on", "--sets"):
        clean.add_argument(option, type=Path, action="append", default=[], metavar="DIR")
    clean.set_defaults(command=remove_sets)
    shown = commands.add_parser("evidence", help="print what an outcome shows; `stook bench pair` calls it")
    shown.add_argument("name")
    shown.add_argument("case", type=evidence.Case.parse)
    shown.set_defaults(command=show_evidence)
    return parser


def measure_arguments(parser: argparse.ArgumentParser) -> None:
    budgets = f"default {pairs.SMALL_BUDGET_S:.0f}, with --full {pairs.FULL_BUDGET_S:.0f}, with --rounds none"
    parser.add_argument("--full", action="store_true", help="`arc` as well, and in memory")
    parser.add_argument("--pool", action="store_true", help="stook's own number of workers against fixed ones")
    parser.add_argument("--mount", action="store_true", help="archives that are mounted")
    parser.add_argument("--set", action="append", metavar="SET", help="of mounts: arc2k, arc10k, arc100k, names")
    parser.add_argument("--pairs", action="append", metavar="PATTERN", help="only these, such as 'walk*'; repeatable")
    parser.add_argument("--on", type=Path, action="append", metavar="DIR", help="where; default below /var/tmp")
    parser.add_argument("--sets", type=absolute, metavar="DIR", help="where file sets are kept; default as --on")
    parser.add_argument("--rounds", type=positive, help="runs of each side; default 5, less where they are long")
    parser.add_argument("--budget", type=positive, metavar="SECONDS", help=f"for each pair; {budgets}")
    parser.add_argument("--seed", type=int, default=7, help="of the order of sides (default 7)")
    parser.add_argument("--programs", type=Path, metavar="DIR", help="where stook and the test kit's programs are")
    parser.add_argument("--results", type=Path, metavar="FILE", help="where raw results go; default in the cache")
    parser.add_argument("--save", metavar="DATE", help="keep the results under bench/runs/DATE")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--no-install", action="store_true", help="install no rivals")
    parser.set_defaults(command=measure)


def absolute(text: str) -> Path:
    return Path(text).absolute()


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


@dataclass(frozen=True)
class Work:
    """Pairs, where their outputs go, and where their sets are."""

    place: Place
    set_place: Place
    pairs: list[Pair]

    def facts(self) -> dict[str, object]:
        """The file system of outputs, and that of sets if they are elsewhere."""
        facts: dict[str, object] = asdict(self.place.mount)
        return facts if self.set_place is self.place else facts | {"sets": asdict(self.set_place.mount)}


def measure(options: argparse.Namespace) -> int:
    """Measures, prints the table, keeps the results if wanted."""
    if options.save:
        results.check(options.save)
    wanted = pairs.chosen(pair_list(options), options.pairs or ["*"])
    if not wanted:
        say("error: no pair has such a name; `bench/run.py pairs --full` lists them")
        return 2
    programs = find_programs(options.programs)
    with ExitStack() as held:
        skipped: dict[str, str] = {}
        work = pool_work(options, wanted, held, skipped) if options.pool else find_work(options, wanted)
        # A place may have several names.
        for place in {os.stat(one.directory)[1:3]: one for each in work for one in (each.place, each.set_place)}.values():
            held.enter_context(place.locked())
        found = measure_all(options, programs, work, skipped)
    say(f"raw results: {found.path}")
    return show(options, found.path, found.records)


def pair_list(options: argparse.Namespace) -> list[Pair]:
    if options.pool:
        return pairs.POOL
    if options.mount:
        return mounts.listed(options.set or ["arc100k"])
    return pairs.FULL if options.full else pairs.SMALL


def find_work(options: argparse.Namespace, wanted: list[Pair]) -> list[Work]:
    """Each place, and with --full memory, for which sets that are in memory already will do."""
    places = [Place(directory) for directory in options.on or [DEFAULT]]
    sets = next((place for place in places if place.directory == options.sets), options.sets and Place(options.sets))
    work = [Work(place, sets or place, wanted) for place in places]
    in_memory = pairs.chosen(pairs.IN_MEMORY, options.pairs or ["*"]) if options.full else []
    if in_memory and Mount.of(MEMORY).filesystem == "tmpfs":
        memory = Place(MEMORY / DEFAULT.name)
        work.append(Work(memory, sets if sets and sets.in_memory else memory, in_memory))
    return work


def pool_work(options: argparse.Namespace, wanted: list[Pair], held: ExitStack, skipped: dict[str, str]) -> list[Work]:
    """What is mounted, and what is in memory; then what is local at the other places, and on an xfs that is made for it."""
    memory, *others = [Place(directory) for directory in options.on or [MEMORY / DEFAULT.name, DEFAULT]]
    local = [pair for pair in wanted if pair in pairs.POOL_LOCAL]
    if local and not options.on:
        try:
            others.append(Place(held.enter_context(storage.xfs(others[0].directory)) / "bench"))
        except (Refused, OSError) as why:
            skipped["xfs"] = str(why)
    work = [Work(memory, memory, wanted), *(Work(place, place, local) for place in others)]
    return [one for one in work if one.pairs]


def find_programs(folder: Path | None) -> Programs:
    """The release build."""
    folder = folder or Path(os.environ.get("CARGO_TARGET_DIR") or machine.REPOSITORY / "target") / "release"
    stook, same_tree, slowfs = ((folder / name).absolute() for name in ("stook", "stook-same-tree", "slowfs"))
    if missing := [path.name for path in (stook, same_tree) if not path.exists()]:
        raise SystemExit(f"error: {', '.join(missing)} not built; `make bench` builds what it needs")
    return Programs(stook, same_tree, slowfs if slowfs.exists() else None)


def measure_all(options: argparse.Namespace, programs: Programs, work: list[Work], skipped: dict[str, str]) -> Results:
    """All pairs at all places. File sets stay for the next time, but in memory only where that was asked for."""
    rivals = Collection(cache_directory())
    names = mounts.names if options.mount else Pair.names
    wanted = {"tar"}.union(*(names(pair) for one in work for pair in one.pairs))
    rivals.collect(not options.no_install, wanted)
    default = cache_directory().parent / "bench" / f"{timestamp().replace(':', '')}.jsonl"
    found = Results(options.results or default)
    found.add(
        "machine",
        time=timestamp(),
        **machine.facts(),
        places=[one.facts() for one in work],
        stook=machine.stook_version(programs.stook, is_ours=options.programs is None),
        rivals=rivals.versions(),
        missing={name: scrub(reason, {}) for name, reason in rivals.missing.items()},
        skipped=skipped,
        run="mount" if options.mount else "pool" if options.pool else "full" if options.full else "small",
        seed=options.seed,
    )
    for one in work:
        kind = MountBench if options.mount else Bench
        bench = kind(one.place, one.set_place, programs, rivals, found, options.seed, options.rounds, budget(options))
        with sshd(one, rivals) as bench.sshd, ExitStack() as bench.held:
            try:
                bench.release()
                for pair in one.pairs:
                    bench.measure(pair)
            finally:
                bench.release()
                if one.set_place.in_memory and one.set_place.directory != options.sets:
                    one.set_place.remove(one.set_place.path("sets"))
    return found


@contextmanager
def sshd(work: Work, rivals: Collection) -> Iterator[storage.Sshd | None]:
    """A server if one of the pairs needs it and it can be had."""
    program = rivals.found.get("sshd")
    if program is None or not any(pair.state == SSHFS for pair in work.pairs):
        yield None
        return
    with storage.sshd(work.place.path("sshd"), program.path) as server:
        yield server


def budget(options: argparse.Namespace) -> float | None:
    """Seconds for each pair; a number of rounds that is asked for is what counts, unless both are."""
    if options.budget or options.rounds:
        return options.budget and float(options.budget)
    if options.pool or options.mount:
        return pairs.MOUNT_BUDGET_S if options.mount else pairs.POOL_BUDGET_S
    return pairs.FULL_BUDGET_S if options.full else pairs.SMALL_BUDGET_S


def show(options: argparse.Namespace, raw: Path, records: list[results.Record]) -> int:
    """Prints the table, and keeps results if that is wanted; returns the exit code."""
    print(table.report(records, options.markdown))
    if options.save:
        said = table.report(records, as_markdown=True)
        say(f"kept in {results.save(raw, options.save, said, table.commands(records), table.timer_trees(records))}")
    return 1 if table.refusals(records) else 0


def print_table(options: argparse.Namespace) -> int:
    return show(options, options.results, results.read(options.results))


def show_evidence(options: argparse.Namespace) -> int:
    try:
        print(json.dumps(evidence.show(options.name, options.case)))
    except Refused as why:
        say(str(why))
        return 1
    return 0


def draw_workers(options: argparse.Namespace) -> int:
    taken = workers.steps(options.printed.read_text(errors="replace"), options.pool)
    if not taken:
        say(f"error: `{options.printed}` has no decisions of the pool `{options.pool}`")
        return 1
    print(workers.drawing(taken), end="")
    return 0


def list_rivals(_options: argparse.Namespace) -> int:
    rivals = Collection(cache_directory())
    rivals.collect(install=True)
    for name in BY_NAME:
        print(f"{name:12} {rivals.found[name].version if name in rivals.found else rivals.missing[name]}")
    return 1 if rivals.missing else 0


def list_pairs(options: argparse.Namespace) -> int:
    for pair in pair_list(options):
        print(f"{pair.name} ({pair.rounds or 5} rounds, goal {pair.goal})")
        for side in pair.sides:
            print(f"    {side.name:10} {side.command}")
    return 0


def remove_sets(options: argparse.Namespace) -> int:
    """What is below the places; of those of --sets only the sets."""
    everything = options.on or ([] if options.sets else [DEFAULT])
    for directory in filter(Path.exists, [*everything, *options.sets]):
        place = Place(directory)
        with place.locked():
            for name in ("sets", "archives", "lists", "out", "mount") if directory in everything else ("sets",):
                place.remove(place.path(name))
    return 0


if __name__ == "__main__":
    sys.exit(main())
