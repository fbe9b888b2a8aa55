"""Draws how many workers a run had, and why their number changed, from what `-vvv` printed: a self-contained SVG.

A line of a pool's decision has `pool="NAME" at_microseconds=.. from=.. to=.. why=".."`; all other lines are left out.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

DECISION = re.compile(r'number of workers pool="(.*?)" at_microseconds=(\d+) from=(\d+) to=(\d+) why="(.*?)"')
WIDTH, HEIGHT, MARGIN, LINE = 760, 300, 48, 16
COLOURS = {"no gain": "#b03030", "fewer do as much": "#2f7d4f", "running": "#2f7d4f"}
TICKS = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Step:
    """A decision, its time in milliseconds."""

    at: float
    before: int
    after: int
    why: str


def steps(text: str, pool: str) -> list[Step]:
    """The decisions of a pool, in their order."""
    found = (match.groups() for match in DECISION.finditer(text))
    return [Step(int(at) / 1000, int(before), int(after), why) for name, at, before, after, why in found if name == pool]


def drawing(taken: list[Step]) -> str:
    """The picture: time to the right, workers upwards, each doubling as high as the one before; below it the reasons."""
    last = max(taken[-1].at * 1.1, 1.0)

    def place(at: float, workers: int) -> tuple[float, float]:
        up = math.log2(max(workers, 1)) / math.log2(TICKS[-1])
        return MARGIN + at / last * (WIDTH - 2 * MARGIN), HEIGHT - MARGIN - up * (HEIGHT - 2 * MARGIN)

    points, marks = [place(0, taken[0].before)], []
    for number, step in enumerate(taken, 1):
        (left, low), (_, high) = place(step.at, step.before), place(step.at, step.after)
        points += [(left, low), (left, high)]
        colour = COLOURS.get(step.why, "#1f5fa8")
        said = f"{number}: {step.at:.1f} ms, {step.before} to {step.after}, {step.why}"
        above = 14 if step.after < step.before else -6
        marks.append(f'<circle cx="{left:.1f}" cy="{high:.1f}" r="3" fill="{colour}"/>')
        marks.append(f'<text x="{left:.1f}" y="{high + above:.1f}" text-anchor="middle" fill="{colour}">{number}</text>')
        marks.append(f'<text x="{MARGIN}" y="{HEIGHT + (number - 1) * LINE}" fill="{colour}">{said}</text>')
    points.append(place(last, taken[-1].after))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    ticks = [f'<text x="{MARGIN - 8}" y="{place(0, n)[1] + 4:.1f}" text-anchor="end">{n}</text>' for n in TICKS]
    height = HEIGHT + len(taken) * LINE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="11">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{MARGIN}" y="20">workers; {last:.0f} ms to the right</text>',
        f'<path d="M{MARGIN},{MARGIN - 12} V{HEIGHT - MARGIN} H{WIDTH - MARGIN}" fill="none" stroke="black"/>',
        f'<polyline points="{line}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>',
        *ticks,
        *marks,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
