"""What a run needs around it: an empty `out`, `before` done, slowfs if the pair wants it; taken down afterwards.

`before` and `after` lie outside slowfs: what they do is not measured, so it need not be slow, and slowfs knows nothing
of the tree yet when the run starts.
"""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from .launcher import PATIENCE_S
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
        self.prefix: list[str] = []
        """What runs the command, such as a tracer."""
        self.closing = ExitStack()

    def __enter__(self) -> Stage:
        out = self.place.fresh("out")
        (out / "files").mkdir()
        tree, target = self.case.tree, out / "target"
        self.outcome = Outcome(tree, out / "files", target, out / "stdout")
        self.values = self.fill(tree, target)
        with ExitStack() as closing:
            self.prepare(closing)
            if self.slowfs:
                source = tree if self.pair.slow == "tree" else out
                seen = closing.enter_context(mounted(self.slowfs, source, self.place.path("mount")))
                tree, target = (seen, target) if self.pair.slow == "tree" else (tree, seen / "target")
                self.outcome = replace(self.outcome, tree=tree)
                self.values = self.fill(tree, target)
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
            closing.push(partial(self.tidy, words(self.side.after, self.values)))
        if self.side.before:
            self.untimed(words(self.side.before, self.values))
        if self.pair.reads == "target" and not self.outcome.target.is_dir():
            raise Refused(f"before {self.side.name} nothing was made at `{{target}}`")

    def tidy(self, command: list[str], kind: type[BaseException] | None, *_: object) -> None:
        """Runs `after`. If the run has failed already, that is what is told."""
        try:
            self.untimed(command)
        except (Refused, OSError, subprocess.SubprocessError):
            if kind is None:
                raise

    def untimed(self, command: list[str]) -> None:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or ["no message"]
            raise Refused(f"`{Path(command[0]).name}` around {self.side.name} failed: {said[0]}")

    @property
    def command(self) -> list[str]:
        return [*self.prefix, *words(self.side.command, self.values)]

    def programs(self) -> list[str]:
        """Names of the programs that the command runs."""
        return sorted(name for name in template_names(self.side.command) if name in self.rivals or name == "stook")

    @property
    def libraries(self) -> str:
        return ":".join(filter(None, (self.rivals[name].libraries for name in self.programs() if name in self.rivals)))
