#!/usr/bin/env python3
"""Write volumes of a tree exactly as zstash 1.6 does, and print the index rows it would store.

The oracle of the byte-for-byte tests. It shares no code with stook: the headers come from Python's own
``tarfile``, as zstash's do; order, splitting and hard links follow docs of the format, not zstash's source.
What zstash dies of (sockets, names that are not UTF-8) is skipped or passed through, so that tests can go on.
Standard output has one JSON object per member, in archive order.
"""

import argparse
import datetime
import hashlib
import json
import os
import stat
import sys
import tarfile
from pathlib import Path

BLOCK = 512
DEFAULT_MAXSIZE = 256 * 2**30


def scan(excluded):
    """Yield (path, size) of everything zstash records below the current directory: all but full directories.

    A directory that holds nothing but ``excluded``, a (device, inode) pair, counts as empty.
    """
    pending = [""]
    while pending:
        directory = pending.pop()
        empty = True
        for entry in os.scandir(directory or "."):
            if entry.is_dir(follow_symlinks=False) and identity(entry.path) == excluded:
                continue
            empty = False
            path = os.path.join(directory, entry.name)
            if entry.is_dir(follow_symlinks=False):
                pending.append(path)
            elif entry.is_symlink():
                yield path, 0
            else:
                yield path, entry.stat(follow_symlinks=False).st_size
        if empty and directory:
            yield directory, 0


def identity(path):
    status = os.lstat(path)
    return status.st_dev, status.st_ino


def archive_order(item):
    """Sort by directory, then name; what has no size and is a directory when followed counts as one.

    Bytes of UTF-8 sort as zstash's text does; names that are not UTF-8 it cannot archive.
    """
    path, size = item
    directory, name = (path, "") if size == 0 and os.path.isdir(path) else os.path.split(path)
    return os.fsencode(directory), os.fsencode(name)


def padded(size):
    return -(-size // BLOCK) * BLOCK


class HashingReader:
    """Passes reads through and keeps the MD5 of what was read."""

    def __init__(self, file):
        self.file = file
        self.md5 = hashlib.md5()

    def read(self, count):
        data = self.file.read(count)
        self.md5.update(data)
        return data


def add_member(volume, path):
    """Append one member and return its index row, or None for what tar cannot hold."""
    member = volume.gettarinfo(path)
    if member is None:
        print(f"skipped: {path!a} is a socket", file=sys.stderr)
        return None
    offset = volume.offset
    status = os.lstat(path)
    row = {"size": member.size, "mtime": time_text(status.st_mtime), "md5": None, "offset": offset}
    if stat.S_ISREG(status.st_mode):
        # A hard link keeps its real size, and its data follows, although its type says there is none.
        member.size = row["size"] = status.st_size
        with open(path, "rb") as file:
            reader = HashingReader(file)
            volume.addfile(member, reader)
        row["md5"] = reader.md5.hexdigest()
    else:
        volume.addfile(member)
    return row


def time_text(seconds):
    """Return the text that Python's sqlite3 stores for a datetime: the double, rounded half to even."""
    moment = datetime.datetime.fromtimestamp(seconds, tz=datetime.timezone.utc)
    return moment.replace(tzinfo=None).isoformat(" ")


def valid_text(path):
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return None
    return path


def write_volumes(items, directory, first_volume, maxsize):
    """Write ``items`` into volumes of about ``maxsize`` bytes and yield the rows."""
    number, volume = first_volume, None
    for path, size in items:
        # The rule counts one header block, though a member has at least three.
        if volume and volume.offset != 0 and volume.offset + BLOCK + padded(size) > maxsize:
            volume.close()
            volume, number = None, number + 1
        if volume is None:
            name = f"{number:06x}.tar"
            volume = tarfile.open(directory / name, "w", format=tarfile.PAX_FORMAT)
        row = add_member(volume, path)
        if row:
            yield {"name": valid_text(path), "name_hex": os.fsencode(path).hex(), **row, "tar": name}
    if volume:
        volume.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("volumes", type=Path, help="directory the volumes go to; made if missing")
    parser.add_argument("--maxsize", type=int, default=DEFAULT_MAXSIZE, metavar="BYTES")
    parser.add_argument("--first-volume", type=int, default=0, metavar="NUMBER")
    parser.add_argument("--exclude", type=Path, metavar="DIR", help="do not archive this directory")
    parser.add_argument("--only-hex", action="append", metavar="PATH", help="archive only this path, given in hex")
    options = parser.parse_args()
    volumes = options.volumes.absolute()
    volumes.mkdir(parents=True, exist_ok=True)
    excluded = identity(options.exclude) if options.exclude else None
    os.chdir(options.source)
    items = sorted(scan(excluded), key=archive_order)
    if options.only_hex is not None:
        wanted = {os.fsdecode(bytes.fromhex(path)) for path in options.only_hex}
        items = [item for item in items if item[0] in wanted]
    for row in write_volumes(items, volumes, options.first_volume, options.maxsize):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
