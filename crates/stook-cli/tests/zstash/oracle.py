"""Command lines for zstash, and what Python's own argparse makes of them: one line of JSON for each.

oracle.py SEED COUNT <TEXTS

The grammar is written anew from the description of zstash 1.6; TEXTS has the sentences of the help, which are stook's own. Bytes
of an argument stand for themselves, as characters up to 255.
"""

import argparse
import contextlib
import io
import json
import os
import random
import struct
import sys

SWITCH = object()

COMMON_WRITE = [
    ("--include", str, None),
    ("--exclude", str, None),
]
GRAMMAR = {
    "create": (
        "zstash create [<args>] path",
        [("path", None, None)],
        [("--hpss", str, None)],
        COMMON_WRITE
        + [
            ("--maxsize", float, 256),
            ("--keep", SWITCH, None),
            ("--cache", str, None),
            ("--non-blocking", SWITCH, None),
            (("-v", "--verbose"), SWITCH, None),
            ("--no_tars_md5", SWITCH, None),
            ("--follow-symlinks", SWITCH, None),
            ("--error-on-duplicate-tar", SWITCH, None),
            ("--overwrite-duplicate-tars", SWITCH, None),
            ("--for-developers-force-database-corruption", str, None),
        ],
    ),
    "update": (
        "zstash update [<args>]",
        [],
        [],
        [("--hpss", str, None)]
        + COMMON_WRITE
        + [
            ("--dry-run", SWITCH, None),
            ("--maxsize", float, 256),
            ("--keep", SWITCH, None),
            ("--cache", str, None),
            ("--non-blocking", SWITCH, None),
            ("--error-on-duplicate-tar", SWITCH, None),
            ("--overwrite-duplicate-tars", SWITCH, None),
            (("-v", "--verbose"), SWITCH, None),
            ("--follow-symlinks", SWITCH, None),
        ],
    ),
    "extract": (
        "zstash extract [<args>] [files]",
        [("files", "*", ["*"])],
        [],
        [
            ("--hpss", str, None),
            ("--workers", int, 1),
            ("--keep", SWITCH, None),
            ("--cache", str, None),
            ("--retries", int, 1),
            ("--tars", str, None),
            (("-v", "--verbose"), SWITCH, None),
            ("--error-on-duplicate-tar", SWITCH, None),
        ],
    ),
    "ls": (
        "zstash ls [<args>] [files]",
        [("files", "*", ["*"])],
        [],
        [
            ("--hpss", str, None),
            ("-l", "long", None),
            ("--cache", str, None),
            ("--tars", SWITCH, None),
            (("-v", "--verbose"), SWITCH, None),
        ],
    ),
    "chgrp": (
        "zstash chgrp [<args>] group hpss_archive",
        [("group", None, None), ("hpss", None, None)],
        None,
        [("-R", SWITCH, None), (("-v", "--verbose"), SWITCH, None)],
    ),
    "": (
        """For v1.6.0, zstash <command> [<args>]

Available zstash commands:
  version    print the version of zstash
  create     create new archive
  update     update existing archive
  extract    extract files from archive
  chgrp      change the group of an archive
  check      check the integrity of the files in the archive
  ls         list the files in an archive

For help with a specific command
  zstash command --help
""",
        [("command", None, None)],
        None,
        [],
    ),
}


def names(flags):
    return (flags,) if isinstance(flags, str) else flags


def parser_of(command, texts):
    usage, positionals, required, optional = GRAMMAR[command]
    text = texts[command]
    parser = argparse.ArgumentParser(
        prog="zstash", usage=usage, description=text["description"] or None
    )
    groups = (parser, parser)
    if required is not None:
        groups = (
            parser.add_argument_group("required named arguments"),
            parser.add_argument_group("optional named arguments"),
        )
    for name, nargs, default in positionals:
        parser.add_argument(
            name, nargs=nargs, default=default, help=text["help"][name] or None
        )
    for group, options in zip(groups, (required or [], optional)):
        for flags, kind, default in options:
            dest = names(flags)[-1].lstrip("-").replace("-", "_")
            extra = {"dest": kind} if isinstance(kind, str) else {}
            dest = extra.get("dest", dest)
            extra["help"] = text["help"][dest]
            if kind is SWITCH or isinstance(kind, str):
                group.add_argument(*names(flags), action="store_true", **extra)
            else:
                group.add_argument(
                    *names(flags),
                    type=kind,
                    default=default,
                    required=group is not parser and options is required,
                    **extra,
                )
    return parser


VALUES = [
    "none", "None", "", "x", "a/b", "globus://nersc/x", "1", "2.5", "-1", "-1.5", "-.5", "1e3", "-1e3", "inf", "-inf",
    "nan", " 7 ", "1_000", "1__0", "_1", "1_", "+3", "0x10", "1.", ".5", "1e", "infinity", "--", "-", "-x", "a b",
    "-a b", "it's", 'say "no"', "both ' and \"", "tab\there", "line\nbreak", "back\\slash", "\xc3\xa9", "\xff", "\xc2\xa0",
    "\xe2\x80\x8b", "\xe2\x82\xac", "-\xc3\xa9", "*", "000000.tar", "a,b", "=", "a=b", "--=", "--x y", "12345678901234567890",
    "\x7f", "\x01", "-5x", "1e400", "\xc3\xa9=1", "-0", "--0", "2e-3",
]  # fmt: skip


def flags_of(command):
    _, _, required, optional = GRAMMAR[command]
    options = [("-h", SWITCH, None), ("--help", SWITCH, None)] + (required or []) + optional
    return [(flag, kind) for flags, kind, _ in options for flag in names(flags)]


def word(source, command):
    flag, kind = source.choice(flags_of(command))
    if flag in ("-h", "--help") and source.random() < 0.6:
        flag, kind = source.choice(flags_of(command))
    spelled = flag
    if source.random() < 0.35 and flag.startswith("--"):
        spelled = flag[: source.randint(3, len(flag))]
    how = source.random()
    value = source.choice(VALUES)
    if kind in (int, float) and source.random() < 0.6:
        value = source.choice(["1", "2", "0.5", "16", "1e1", "3.25"])
    if how < 0.3:
        return [spelled + "=" + value]
    if how < 0.4 and not flag.startswith("--"):
        return [spelled + source.choice(["v", "vv", "R", "vR", "l", "h", "x", "=", "v=1", "lv", value])]
    if kind is SWITCH or isinstance(kind, str):
        return [spelled] if how < 0.9 else [spelled, value]
    return [spelled, value] if how < 0.95 else [spelled]


def line(source, command):
    typed = []
    positionals = GRAMMAR[command][1]
    wanted = sum(source.choice([0, 1, 3]) if nargs else 1 for _, nargs, _ in positionals)
    if source.random() < 0.15:
        wanted = source.randint(0, 3)
    words = [[source.choice(VALUES)] for _ in range(wanted)]
    words += [word(source, command) for _ in range(source.choice([0, 0, 1, 1, 2, 3, 5]))]
    if command == "create" and source.random() < 0.8:
        words.append([source.choice(["--hpss=none", "--hpss=/a", "--hp=x"])])
    if source.random() < 0.05:
        words.append(["--"])
    source.shuffle(words)
    for some in words:
        typed += some
    # zstash hands the first word alone to the parser of commands.
    return typed[:1] if command == "" else typed


def as_text(byte_characters):
    return byte_characters.encode("latin-1").decode("utf-8", "surrogateescape")


def as_bytes(text):
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def value_of(value):
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        if isinstance(value, float) or value == 256:
            return struct.pack(">d", float(value)).hex()
        return str(value)
    if isinstance(value, list):
        return [as_bytes(item) for item in value]
    return as_bytes(value)


def outcome(parser, typed):
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            values = parser.parse_args([as_text(word) for word in typed])
    except SystemExit as end:
        if end.code == 0:
            return {"help": out.getvalue()}
        assert end.code == 2
        shown = err.getvalue().encode("utf-8", "backslashreplace").decode()
        return {"error": shown}
    return {"values": {name: value_of(value) for name, value in vars(values).items()}}


def main():
    if sys.version_info[:2] != (3, 11):
        print(json.dumps({"skipped": f"Python is {sys.version.split()[0]}, not 3.11"}))
        return
    seed, count = map(int, sys.argv[1:])
    texts = json.load(sys.stdin)
    source = random.Random(seed)
    commands = list(GRAMMAR)
    for _ in range(count):
        command = source.choice(commands)
        typed = line(source, command)
        columns = source.choice(["80", "80", "100", "50", "30", "12", "1", "0", "200", "x", " 90 ", "24"])
        os.environ["COLUMNS"] = columns
        parser = parser_of(command, texts)
        found = outcome(parser, typed)
        row = {"command": command, "typed": typed, "columns": columns, "outcome": found}
        print(json.dumps(row))


main()
