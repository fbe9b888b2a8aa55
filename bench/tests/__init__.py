"""Tests of the harness; see `bench/README.md`."""
