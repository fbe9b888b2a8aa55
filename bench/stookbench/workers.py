"""Shows how many workers the pool had over time, from a report of `stook --timings=json`.

Reads the `gauges` at the top level: `[{"path": [..], "name": "workers", "samples": [[time, value], ..]}]`. Whole
numbers are nanoseconds, as stook writes them, others seconds. A gauge holds its value until the next sample, so it is
drawn as steps, in text and as SVG.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

GAUGE = "workers"
COLUMNS, LINES = 72, 16
WIDTH, HEIGHT, MARGIN = 720, 240, 48


@dataclass(frozen=True)
class Series:
    """Samples of one gauge, in the order of time; never empty."""

    path: str
    samples: list[tuple[float, float]]

    @property
    def end(self) -> float:
        return self.samples[-1][0]

    @property
    def greatest(self) -> float:
        return max(value for _, value in self.samples)

    def at(self, seconds: float) -> float:
        """The value then; before the first sample, 0."""
        return next((value for time, value in reversed(self.samples) if time <= seconds), 0.0)

    def mean(self) -> float:
        """Over time, from the first sample to the last."""
        steps = zip(self.samples, self.samples[1:], strict=False)
        area = sum(value * (after - before) for (before, value), (after, _) in steps)
        span = self.end - self.samples[0][0]
        return area / span if span else self.greatest


def read(path: Path) -> list[Series]:
    """All series of the gauge in a report."""
    report = json.loads(path.read_text())
    found = []
    for gauge in report.get("gauges", []):
        if gauge["name"] == GAUGE and gauge["samples"]:
            # The path may come as one text or as a list of scopes.
            where = gauge["path"] if isinstance(gauge["path"], str) else " > ".join(gauge["path"])
            found.append(Series(where, sorted((seconds(time), float(value)) for time, value in gauge["samples"])))
    return found


def seconds(time: float) -> float:
    return time / 1e9 if isinstance(time, int) else time


def plot(series: Series) -> str:
    """The greatest value of each moment as a column; the axis counts workers."""
    step = series.end / COLUMNS or 1.0
    heights = [peak_between(series, column * step, (column + 1) * step) for column in range(COLUMNS)]
    top = max(series.greatest, 1.0)
    lines = []
    for line in range(min(LINES, int(top)), 0, -1):
        level = top * line / min(LINES, int(top))
        bars = "".join("#" if height >= level else " " for height in heights)
        lines.append(f"{level:5.0f} |{bars}".rstrip())
    axis = f"      +{'-' * COLUMNS}\n       0 s{f'{series.end:.3g} s':>{COLUMNS - 3}}"
    facts = f"{series.path}: at most {series.greatest:.0f} workers, {series.mean():.1f} on average, {series.end:.3g} s"
    return "\n".join([facts, *lines, axis])


def peak_between(series: Series, start: float, end: float) -> float:
    inside = [value for time, value in series.samples if start <= time < end]
    return max([series.at(start), *inside])


def svg(all_series: list[Series]) -> str:
    """One picture with a panel for each series."""
    panels = "\n".join(panel(series, number * HEIGHT) for number, series in enumerate(all_series))
    height = HEIGHT * len(all_series)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" '
        f'font-size="12">\n<rect width="100%" height="100%" fill="white"/>\n{panels}\n</svg>\n'
    )


def panel(series: Series, top: int) -> str:
    left, right, bottom, upper = MARGIN, WIDTH - 16, top + HEIGHT - 32, top + 32
    span, most = series.end or 1.0, max(series.greatest, 1.0)

    def point(time: float, value: float) -> str:
        return f"{left + (right - left) * time / span:.1f},{bottom - (bottom - upper) * value / most:.1f}"

    points = [point(*series.samples[0])]
    for (_, before), (time, value) in zip(series.samples, series.samples[1:], strict=False):
        points += [point(time, before), point(time, value)]
    return "\n".join(
        [
            f'<text x="{left}" y="{top + 20}">{escape(series.path)}: workers</text>',
            f'<path d="M{left},{upper} V{bottom} H{right}" fill="none" stroke="black"/>',
            f'<polyline points="{" ".join(points)}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>',
            f'<text x="{left - 6}" y="{upper + 4}" text-anchor="end">{most:.0f}</text>',
            f'<text x="{left - 6}" y="{bottom + 4}" text-anchor="end">0</text>',
            f'<text x="{right}" y="{bottom + 18}" text-anchor="end">{span:.3g} s</text>',
        ]
    )
