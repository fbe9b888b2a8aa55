"""Keeps a run for good: `bench/runs/DATE/raw.jsonl` and a README with its table. Both are meant to be committed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from . import table
from .records import read

RUNS = Path(__file__).parent.parent / "runs"


def check(date: str, runs: Path = RUNS) -> Path:
    """Where a run of that date is to be kept; a date is used once."""
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}[a-z]?", date):
        raise SystemExit(f"error: `{date}` is not a date like 2026-11-21")
    if (runs / date).exists():
        raise SystemExit(f"error: the run {date} is kept already")
    return runs / date


def save(raw: Path, date: str, runs: Path = RUNS) -> Path:
    """Copies the raw results and writes their README."""
    folder = check(date, runs)
    records = read(raw)
    folder.mkdir(parents=True)
    shutil.copyfile(raw, folder / "raw.jsonl")
    (folder / "README.md").write_text(readme(records, date))
    return folder


def readme(records: list[dict[str, object]], date: str) -> str:
    return f"""# Run of {date}

Raw samples: `raw.jsonl`. The table is made from them by `bench/run.py table --markdown bench/runs/{date}/raw.jsonl`.
What the columns and states mean: [bench/README.md](../../README.md).

{table.report(records, as_markdown=True)}

## Commands

```
{table.commands(records)}
```
"""
