"""What a run needs around it: an empty `out`, slowfs if the pair wants it, `before` done; taken down afterwards."""

from __future__ import annotations

import shlex
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from .pair import PLACES, Case, Outcome, Pair, Refused, Side, template_names, words
from .place import Place
from .rivals import Found
from .slow import mounted


class Stage:
    """A context: inside it the command can be run; the outcome is there until the next stage."""

    def __init__(
        self,
        place: Place,
        pair: Pair,
        side: Side,
        case: Case,
        stook: Path,
        rivals: dict[str, Found],
        slowfs: Path | None,
    ) -> None:
        self.place, self.pair, self.side, self.case = place, pair, side, case
        self.rivals, self.slowfs, self.stook = rivals, slowfs, stook
        self.closing = ExitStack()

    def __enter__(self) -> Stage:
        out = self.place.fresh("out")
        (out / "files").mkdir()
        with ExitStack() as closing:
            tree, target, real_target = self.case.tree, out / "target", out / "target"
            if self.slowfs:
                source = self.case.tree if self.pair.slow == "tree" else out
                seen = closing.enter_context(mounted(self.slowfs, source, self.place.path("mount")))
                tree, target = (seen, target) if self.pair.slow == "tree" else (tree, seen / "target")
            self.outcome = Outcome(tree, out / "files", real_target, out / "stdout")
            self.values = self.fill(tree, target)
            self.prepare(closing)
            self.closing = closing.pop_all()
        return self

    def __exit__(self, *reason: Any) -> None:
        self.closing.__exit__(*reason)

    def fill(self, tree: Path, target: Path) -> dict[str, str]:
        """What the names in templates stand for."""
        values = {
            "stook": self.stook,
            "tree": tree,
            "archive": self.case.archive,
            "volume": self.case.volume,
            "volume_size": self.pair.volume_size,
            "out": self.outcome.out,
            "target": target,
        }
        if values.keys() != PLACES.keys():
            raise ValueError("PLACES and what fills them have become different")
        values |= {name: found.path for name, found in self.rivals.items()}
        return {name: str(value) for name, value in values.items()}

    def prepare(self, closing: ExitStack) -> None:
        if self.side.after:
            closing.callback(self.untimed, self.side.after)
        if self.side.before:
            self.untimed(self.side.before)

    def untimed(self, template: str) -> None:
        done = subprocess.run(words(template, self.values), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise Refused(f"`{shlex.split(template)[0]}` around {self.side.name} failed: {said[0] if said else ''}")

    @property
    def command(self) -> list[str]:
        return words(self.side.command, self.values)

    def programs(self) -> list[str]:
        """Names of the programs that the command runs."""
        return sorted(name for name in template_names(self.side.command) if name in self.rivals or name == "stook")

    @property
    def libraries(self) -> str:
        return ":".join(filter(None, (self.rivals[name].libraries for name in self.programs() if name in self.rivals)))
