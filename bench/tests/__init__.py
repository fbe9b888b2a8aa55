"""Tests of the bench harness itself: `python3 -m unittest discover -s bench/tests -t bench`. They take seconds."""
