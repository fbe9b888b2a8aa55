"""Medians, spread, and the ratio of two medians with an interval. Times have long tails: no means."""

from __future__ import annotations

import random
import statistics
from dataclasses import dataclass

RESAMPLES = 5_000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Spread:
    """The median of some samples and how they lie about it."""

    count: int
    least: float
    lower_quartile: float
    median: float
    upper_quartile: float
    greatest: float

    @staticmethod
    def of(samples: list[float]) -> Spread:
        if len(samples) == 1:
            return Spread(1, *samples * 5)
        lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive")
        return Spread(len(samples), min(samples), lower, median, upper, max(samples))


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians and its interval of 95 %."""

    value: float
    low: float
    high: float

    def contains(self, value: float) -> bool:
        return self.low <= value <= self.high


def ratio_of_medians(ours: list[float], theirs: list[float], seed: int = 1) -> Ratio:
    """The ratio, with the percentile bootstrap's interval. With five samples a side that is a rough one.

    Source: Efron and Tibshirani, An introduction to the bootstrap, 1993, chapter 13.
    """
    rng = random.Random(seed)
    ratios = sorted(
        statistics.median(rng.choices(ours, k=len(ours))) / statistics.median(rng.choices(theirs, k=len(theirs)))
        for _ in range(RESAMPLES)
    )
    tail = (1 - CONFIDENCE) / 2
    low, high = ratios[round(tail * (RESAMPLES - 1))], ratios[round((1 - tail) * (RESAMPLES - 1))]
    return Ratio(statistics.median(ours) / statistics.median(theirs), low, high)


def distances_from_median(samples: list[float]) -> list[float]:
    """How many median absolute deviations each sample lies from the median; all 0 if the deviation is 0."""
    median = statistics.median(samples)
    deviation = statistics.median(abs(sample - median) for sample in samples)
    return [(sample - median) / deviation if deviation else 0.0 for sample in samples]
