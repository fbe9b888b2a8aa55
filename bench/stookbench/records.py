"""The raw results: JSON lines, written as they come. `bench/README.md` documents the fields.

Tables are made from these records alone, so they can be made again, on another machine, years later.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from .doubts import Record
from .pair import Pair

SCHEMA = 1
MEASURED, REFUSED, NOT_MEASURED = "measured", "refused", "not measured"


class Results:
    """The records of one run of the bench, in a file and in memory."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.records: list[Record] = []
        path.write_text("")

    def add(self, kind: str, **facts: object) -> Record:
        record: Record = {"kind": kind, "schema": SCHEMA, **facts}
        self.records.append(record)
        with self.path.open("a") as lines:
            lines.write(json.dumps(record) + "\n")
        return record


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


def pair_facts(pair: Pair) -> Record:
    """What a table needs to know of a pair."""
    return {
        "pair": pair.name,
        "work": pair.work,
        "set": pair.file_set,
        "state": pair.state,
        "sides": [{"side": side.name, "command": side.command, "counts": side.counts} for side in pair.sides],
        "goal": asdict(pair.goal),
        "volume_size": pair.volume_size,
    }


def timestamp() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
