"""The raw results: JSON lines, written as they come, and kept for good if wanted. `bench/README.md` has the fields.

Tables are made from these records alone, so they can be made again, on another machine, years later.
"""

from __future__ import annotations

import json
import re
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

Record = dict[str, Any]

SCHEMA = 1
MEASURED, REFUSED, NOT_MEASURED = "measured", "refused", "not measured"
RUNS = Path(__file__).parent.parent / "runs"
README = """# Run of {date}

Raw samples: `raw.jsonl`. The table is made from them by `bench/run.py table --markdown bench/runs/{date}/raw.jsonl`.
What the columns and states mean: [bench/README.md](../../README.md).

{table}

## Commands

```
{commands}
```
"""


class Results:
    """The records of one run of the bench, in a file and in memory."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.records: list[Record] = []
        path.write_text("")

    def add(self, kind: str, **facts: object) -> None:
        record: Record = {"kind": kind, "schema": SCHEMA, **facts}
        self.records.append(record)
        with self.path.open("a") as lines:
            lines.write(json.dumps(record) + "\n")


def read(path: Path) -> list[Record]:
    """All records of a file; a last line that was cut off by an interruption is left out."""
    records = []
    for line in path.read_text().splitlines():
        try:
            records.append(json.loads(line))
        except json.JSONDecodeError:
            break
    if not records or records[0].get("kind") != "machine" or records[0].get("schema") != SCHEMA:
        raise SystemExit(f"error: `{path}` holds no results of schema {SCHEMA}")
    return records


def check(date: str, runs: Path = RUNS) -> Path:
    """Where a run of that date is to be kept; a date is used once."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}(?:[a-z]|-[a-z]+)?", date):
        raise SystemExit(f"error: `{date}` is not a date like 2026-11-21")
    if (runs / date).exists():
        raise SystemExit(f"error: the run {date} is kept already")
    return runs / date


def save(raw: Path, date: str, table: str, commands: str, trees: dict[str, str], runs: Path = RUNS) -> Path:
    """Copies the raw results, writes their README, and a file for each tree of timers."""
    folder = check(date, runs)
    folder.mkdir(parents=True)
    shutil.copyfile(raw, folder / "raw.jsonl")
    (folder / "README.md").write_text(README.format(date=date, table=table, commands=commands))
    for side, tree in trees.items():
        (folder / f"timers-{side.replace(' ', '-')}.txt").write_text(tree)
    return folder


def timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
