"""Statistics with known answers, and when a result is doubtful."""

from __future__ import annotations

import unittest

from stookbench import doubts
from stookbench.stats import Spread, distances_from_median, ratio_of_medians


class Statistics(unittest.TestCase):
    def test_quartiles_of_one_to_five(self) -> None:
        self.assertEqual(Spread.of([5.0, 1.0, 4.0, 2.0, 3.0]), Spread(5, 1.0, 2.0, 3.0, 4.0, 5.0))

    def test_one_sample_is_all_of_its_spread(self) -> None:
        self.assertEqual(Spread.of([2.5]), Spread(1, 2.5, 2.5, 2.5, 2.5, 2.5))

    def test_ratio_of_constants_has_no_interval(self) -> None:
        ratio = ratio_of_medians([1.0] * 5, [4.0] * 5)
        self.assertEqual((ratio.value, ratio.low, ratio.high), (0.25, 0.25, 0.25))

    def test_ratio_is_that_of_medians_not_of_means(self) -> None:
        self.assertEqual(ratio_of_medians([1.0, 2.0, 300.0], [4.0, 4.0, 4.0]).value, 0.5)

    def test_interval_holds_the_ratio_and_is_the_same_every_time(self) -> None:
        ours, theirs = [1.0, 1.1, 0.9, 1.05, 0.95], [2.0, 2.2, 1.8, 2.1, 1.9]
        ratio = ratio_of_medians(ours, theirs)
        self.assertTrue(0.4 < ratio.low < ratio.value < ratio.high < 0.65, ratio)
        self.assertEqual(ratio, ratio_of_medians(ours, theirs))
        self.assertTrue(ratio.contains(0.5) and not ratio.contains(1.0))

    def test_distances_are_in_median_deviations(self) -> None:
        self.assertEqual(distances_from_median([1.0, 2.0, 3.0, 4.0, 100.0]), [-2.0, -1.0, 0.0, 1.0, 97.0])
        self.assertEqual(distances_from_median([7.0, 7.0, 7.0]), [0.0, 0.0, 0.0])


def runs(times: list[float], **facts: object) -> list[doubts.Record]:
    common = {"other_cpu_s": 0.0, "read_bytes": 0, "bytes": 1_000_000, "state": "hot"} | facts
    return [{"wall_s": time} | common for time in times]


class Doubts(unittest.TestCase):
    def test_steady_runs_are_not_doubted(self) -> None:
        self.assertEqual(doubts.doubts(runs([1.0, 1.02, 0.99, 1.01, 1.0]), cores=2), [])

    def test_short_runs(self) -> None:
        self.assertIn("takes only 20 ms", doubts.doubts(runs([0.02, 0.02, 0.02]), cores=2)[0])

    def test_a_single_run_is_doubted_except_on_slowfs(self) -> None:
        self.assertEqual(doubts.doubts(runs([1.0]), cores=2), ["was run only once"])
        self.assertEqual(doubts.doubts(runs([1.0], state="slow"), cores=2), [])

    def test_a_slow_first_run(self) -> None:
        self.assertIn("took 9.000 s the first time", doubts.doubts(runs([9.0, 1.0, 1.01, 1.02, 0.99]), cores=2)[0])

    def test_a_later_outlier(self) -> None:
        self.assertEqual(doubts.doubts(runs([1.0, 1.01, 9.0, 0.99, 1.02]), cores=2), ["has 1 outliers in 5 runs"])

    def test_a_very_steady_series_has_no_outlier_of_a_percent(self) -> None:
        self.assertEqual(doubts.doubts(runs([1.0, 1.0001, 1.0, 1.01, 1.0001]), cores=2), [])

    def test_other_programs_and_device_reads(self) -> None:
        self.assertIn("others used 50% of the processors", doubts.doubts(runs([1.0] * 3, other_cpu_s=1.0), cores=2)[0])
        self.assertIn("although hot", doubts.doubts(runs([1.0] * 3, read_bytes=500_000), cores=2)[0])
        self.assertEqual(doubts.doubts(runs([1.0] * 3, read_bytes=500_000, state="cold"), cores=2), [])

    def test_load_before_the_start(self) -> None:
        self.assertIn("load average was 3.5", doubts.load({"load_average": 3.5, "cores": 2}) or "")
        self.assertIsNone(doubts.load({"load_average": 1.0, "cores": 2}))


if __name__ == "__main__":
    unittest.main()
