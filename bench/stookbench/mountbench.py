"""Measures a pair of mounts: makes what each view needs, once, and has a mount begun before each run and ended after it.

A run: mount > what must have happened before > the state > the proof > the command, timed > the server is asked what it took >
unmount. Inputs are the files below a mount, volumes, indexes, images and blocks, of which the kernel is asked; the web server
reads the same files on the same machine, so they are cold for it, too.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import filesets, storage
from .filesets import FileSet
from .measure import RUN, UNMOUNT, Bench
from .mounts import VIEWS
from .pair import COLD, HOT, Pair, Refused, Side, template_names, words
from .rivals import attempt, say

CAT = ["sh", "-c", 'find "$@" -type f -print0 | xargs -0 -n 1000 -P 2 cat >/dev/null', "sh"]
LINE_BYTES_PER_S = 125_000_000
RANDOM_FILES = 2_000
# Servers keep names of what they have open in memory: some of more than these are not one in a hundred.
SAMPLE = 600
# The interpreter is not what an import is about, nor what is in its own library.
LIBRARY = "import asyncio, ctypes, decimal, http.client, multiprocessing, sqlite3, unittest, zoneinfo, xml.etree.ElementTree"
# A server ends with the shell that began it, which waits for it; its processor time until now does not count.
SERVE = """export XDG_CACHE_HOME={out}/home
serve() {{
  ( "$@" & echo $! >{out}/pid; wait ) >{out}/log 2>&1 &
  until mountpoint -q {seen}; do kill -0 $! 2>/dev/null || {{ cat {out}/log >&2; exit 1; }}; sleep 0.01; done
}}
ticks() {{ awk '{{ sub(/.*\\) /, ""); print $12 + $13 }}' /proc/$(cat {out}/pid)/stat; }}
"""
BEGUN = "\nif test -s {out}/pid; then ticks >{out}/ticks; fi"
FILL = """{stook} mount --cache {target} {url} {seen}
find {seen} -type f -print0 | xargs -0 -n 500 cat >/dev/null && umount {seen}"""
# What the server took, a line for each run.
ASK = """if test -s {out}/ticks; then
  served=$(echo "$(ticks) $(cat {out}/ticks) $(getconf CLK_TCK)" | awk '{{ print ($1 - $2) / $3 }}')
  printf '{{"served_s": %s, "server_peak_bytes": %s' $served \\
    $(awk '/^VmHWM/ {{ print $2 * 1024 }}' /proc/$(cat {out}/pid)/status)
  if {stook} talk {seen} stats >{out}/stats 2>/dev/null; then
    printf ', "stats": %s' "$(tr -d '\\n' <{out}/stats)"
    {stook} talk {seen} timers --format json >{out}/timers 2>/dev/null &&
      printf ', "timers": %s' "$(tr -d '\\n' <{out}/timers)"
  fi
  echo '}}'
elif test -e {made}; then printf '{{"made_bytes": %s}}\\n' $(du -sb {made} | cut -f1)
else echo '{{}}'; fi >>{served}
"""


class MountBench(Bench):
    """A bench whose sides see the set through views."""

    ports: dict[str, str] | None = None
    """URLs of the web server, directly and over the link, once it is there."""

    def run(self, pair: Pair) -> dict[str, Any]:
        self.served.unlink(missing_ok=True)
        return super().run(pair)

    @property
    def served(self) -> Path:
        return self.place.path("served")

    def extras(self, count: int) -> list[dict[str, Any]]:
        """What servers took, run by run. A sample's proof holds the rest."""
        found = [json.loads(line) for line in self.scrub(self.served.read_text()).splitlines()]
        if len(found) != count:
            raise Refused(f"{count} runs, and {len(found)} answers of servers")
        for one in found:
            if roots := one.get("timers", {}).get("roots"):
                one["timers"] = [brief(root) for root in roots]
        return found

    def possible(self, pair: Pair) -> tuple[Pair, dict[str, str]]:
        """The pair without the sides that cannot be had, and why; of ours, nothing is left out."""
        skipped = {side.name: why for side in pair.sides if (why := self.lacking(side))}
        return replace(pair, rivals=tuple(side for side in pair.rivals if side.name not in skipped)), skipped

    def hindrance(self, pair: Pair) -> str | None:
        if why := self.lacking(pair.ours):
            return why
        if pair.ours.view in ("http", "link", "cached") and not self.rivals.found.get("nginx"):
            return "needs nginx"
        if pair.file_set == "science" and "science" in self.rivals.missing:
            return f"numpy, scipy, pandas: {self.rivals.missing['science']}"
        return "needs root" if os.geteuid() != 0 else None

    def lacking(self, side: Side) -> str | None:
        """Why a side cannot be run here."""
        view = VIEWS[side.view]
        options = [*view.needs, *(word for word in side.options.split() if word.startswith("--"))]
        known = self.stook("mount", "--help")
        if unknown := [option for option in options if option not in known]:
            return f"this stook has no `mount {unknown[0]}`"
        names = template_names(side.command) | template_names(view.begin)
        return next((f"{name} {self.rivals.missing[name]}" for name in sorted(names) if name in self.rivals.missing), None)

    def spec(self, pair: Pair) -> dict[str, Any]:
        tree = self.file_set(pair.file_set)
        values = self.values(pair, tree)
        places = self.places(pair, values)
        return {
            "rounds": self.rounds_of(pair),
            "budget_seconds": self.budget_s,
            "seed": self.seed,
            # Warm is cold, as what makes it warm lies on the disk.
            "state": HOT if pair.state == HOT else COLD,
            "inputs": self.inputs(places),
            "reads_data": True,
            "warm": [*CAT, *map(str, places)],
            "sync": [str(self.place.directory)],
            "stdout": str(self.place.path("out", "stdout")),
            "evidence_in_first_round": True,
            "files": tree.properties["files"],
            "bytes": tree.properties["bytes"],
            "sides": [self.side(pair, side, tree, values) for side in pair.sides],
        }

    def values(self, pair: Pair, tree: FileSet) -> dict[str, str]:
        """What stands for the names in templates; what a side needs is made when it is asked for the first time."""
        out = self.place.path("out")
        values: dict[str, object] = {name: found.path for name, found in self.rivals.found.items()}
        values |= {"stook": self.programs.stook, "tree": tree.path, "seen": self.place.path("mount"), "out": out}
        values |= {"cache": out / "cache", "made": out / "made", "served": self.served, "options": ""}
        values |= {"lists": self.place.path("lists", pair.file_set), "python": sys.executable}
        texts = [text for side in pair.sides for text in (side.command, side.before, VIEWS[side.view].begin)]
        names = {name for text in texts for name in template_names(text)} | set(pair.reads.split())
        for name in sorted(names & MADE.keys() - {"url", "link"}):
            values[name] = self.made(name, pair.file_set, tree)
        if "plain" in names:
            values["plain"] = self.servers(self.made("archive", pair.file_set, tree))["url"]
        if names & {"url", "link", "line_s"}:
            values["compressed"] = self.made("compressed", pair.file_set, tree)
            values |= self.servers(Path(str(values["compressed"])))
            sizes = (file.stat().st_size for file in Path(str(values["compressed"])).iterdir())
            values["line_s"] = sum(sizes) / LINE_BYTES_PER_S
        if "filled" in names:
            values["filled"] = self.filled(pair.file_set, {name: str(value) for name, value in values.items()})
        return {name: str(value) for name, value in values.items()}

    def made(self, name: str, file_set: str, tree: FileSet) -> Path:
        """An archive, image or index of the set."""
        path = self.place.path("archives", f"{file_set}.{name}")
        if name == "volume":
            return self.made("archive", file_set, tree) / "000000.tar"
        if not path.exists():
            say(f"making {name} of {file_set}")
            path.parent.mkdir(exist_ok=True)
            values = {program: str(found.path) for program, found in self.rivals.found.items()}
            values |= {"stook": str(self.programs.stook), "tree": str(tree.path), "target": str(path)}
            if name == "ratarindex":
                values["volume"] = str(self.made("volume", file_set, tree))
                values["seen"] = str(self.place.path("mount"))
                Path(values["seen"]).mkdir(exist_ok=True)
            if failed := attempt(words(MADE[name], values)):
                raise Refused(f"{name} could not be made: {failed}")
        return path

    def filled(self, file_set: str, values: dict[str, str]) -> Path:
        """A directory of blocks that holds all that is read of the set."""
        path = self.place.path("archives", f"{file_set}.filled")
        if not path.exists():
            self.place.path("mount").mkdir(exist_ok=True)
            script = FILL.format(**quoted(values | {"target": str(path)}))
            if failed := attempt(["sh", "-ec", script]):
                raise Refused(f"the block cache could not be filled: {failed}")
        return path

    def servers(self, archive: Path) -> dict[str, str]:
        """A web server for what is made here, and a link to it, for as long as this bench lives."""
        if self.ports is None:
            program = self.rivals.found["nginx"].path
            port = self.held.enter_context(storage.nginx(self.place.path("nginx"), program, archive.parent))
            link = self.held.enter_context(storage.link(self.programs.stook.parent / "slowlink", port))
            self.ports = {"url": f"http://127.0.0.1:{port}", "link": link}
        return {name: f"{url}/{archive.name}" for name, url in self.ports.items()}

    def places(self, pair: Pair, values: dict[str, str]) -> list[Path]:
        """What the sides read: directories and files, the tree among them. Of a pair that is hot, what it says."""
        names = {name for side in pair.sides for name in VIEWS[side.view].reads}
        said = set(pair.reads.split()) - {"contents"}
        return [Path(values[name]) for name in sorted(said if said and pair.state == HOT else names)]

    def inputs(self, places: list[Path]) -> list[str]:
        """Files there of which the kernel is asked, all if they are few."""
        found: list[str] = []
        for place in places:
            files = [f"{place}/{file}" for file in sorted(filesets.files_in(place))] if place.is_dir() else [str(place)]
            found += random.Random(self.seed).sample(files, min(len(files), SAMPLE))
        return found

    def side(self, pair: Pair, side: Side, tree: FileSet, values: dict[str, str]) -> dict[str, object]:
        view, is_tree = VIEWS[side.view], side.view == "tree"
        values = values | {"seen": str(tree.path)} if is_tree else values
        # The options are words of the shell.
        shell = quoted(values) | {"options": side.options}
        point = shlex.quote(str(self.place.path("mount")))
        command = words(side.command, values)
        clean = f"rm -rf {shell['out']} && mkdir -p {shell['out']} {point}"
        before = f"{shlex.join(words(side.before, values))} >/dev/null" if side.before else ""
        prepare = [SERVE.format(**shell), clean, view.begin.format(**shell), before, BEGUN.format(**shell)]
        case = {name: "" for name in ("archive", "volume", "target", "tar")} | {"out": values["out"]}
        case |= {"tree": tree.path, "seen": values["seen"], "stdout": self.place.path("out", "stdout")}
        case |= {"same_tree": self.programs.same_tree, "files": tree.properties["files"], "sample": tree.sample[:50]}
        shown = side.evidence or pair.evidence or "nothing"
        evidence = [sys.executable, str(RUN), "evidence", shown, json.dumps(case, default=str)]
        load = [[values["python"], "-c", LIBRARY]] if pair.work == "import" else []
        load += [["sh", "-c", f"{program} --version"] for program in ("cat", "xargs", "find", "seq", "tar", "ls")]
        return {
            "name": side.name,
            "command": command,
            "prepare": ["sh", "-ec", "\n".join(prepare)],
            "tidy": ["sh", "-c", SERVE.format(**shell) + ASK.format(**shell) + UNMOUNT.format(mount=point) + " || true"],
            "evidence": evidence,
            "load": load if pair.state != HOT else [],
        }

    def file_set(self, name: str) -> FileSet:
        """The set, and lists of its files: all, parts of them for several processes, and some in no order."""
        tree = super().file_set(name) if name in filesets.KINDS else self.science()
        self.sets[name] = tree
        lists = self.place.path("lists", name)
        if not lists.exists():
            files = sorted(filesets.files_in(tree.path))
            mixed = random.Random(self.seed).sample(files, min(len(files), RANDOM_FILES))
            parts = {str(part): files[part * len(files) // 4 : (part + 1) * len(files) // 4] for part in range(4)}
            lists.mkdir(parents=True)
            for each, paths in {"all": files, "random": mixed, **parts}.items():
                (lists / each).write_text("".join(path + "\0" for path in paths))
        return tree

    def science(self) -> FileSet:
        """The packages of a Python environment, without the environment's own program."""
        path = self.place.path("sets", "science")
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            packages = next(self.rivals.found["science"].path.parent.parent.glob("lib/python*/site-packages"))
            shutil.copytree(packages, path, symlinks=True)
        files = sorted(filesets.files_in(path))
        size = sum((path / file).stat().st_size for file in files)
        sample = random.Random(self.seed).sample(files, filesets.SAMPLE)
        made = FileSet(path, {"files": len(files), "bytes": size}, sample)
        if "science" not in self.sets:
            self.results.add("set", place=self.place.name, set="science", seed=self.seed, properties=made.properties)
        return made

    def release(self) -> None:
        """Leaves archives and images, which took longer to make than to measure."""
        self.detach()
        for name in ("out", "mount", "printed", "spec.json", "served"):
            self.place.remove(self.place.path(name))
        filesets.remove_partial(self.set_place)


def brief(scope: dict[str, Any]) -> dict[str, Any]:
    """A scope of timers and those below, without what raw results have no room for."""
    children = [brief(one) for one in scope["children"]]
    return {"name": scope["name"], "calls": scope["calls"], "total_ns": scope["total_ns"], "children": children}


def quoted(values: dict[str, str]) -> dict[str, str]:
    return {name: shlex.quote(value) for name, value in values.items()}


# How each is made, by name; those that are made otherwise are here for their names.
MADE = {
    "archive": "{stook} create --quiet {tree} {target}",
    "compressed": "{stook} create --quiet --zstd=3 {tree} {target}",
    "squashfs": "{mksquashfs} {tree} {target} -comp zstd -Xcompression-level 3 -quiet -no-progress",
    "dwarfsimage": "mkdwarfs -i {tree} -o {target}",
    "ratarindex": """sh -ec '"$1" --index-file "$2" "$3" "$4"; umount "$4"' sh {ratarmount} {target} {volume} {seen}""",
    "volume": "",
}
