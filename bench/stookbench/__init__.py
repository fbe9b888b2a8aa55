"""The harness behind `make bench`: stook against its rivals, in the same run, with the raw samples kept.

`pairs` says what is compared, `measure` does it, `table` shows it. See `bench/README.md`.
"""
