"""Makes databases with ZODB itself, and prints what ZODB finds in each, one JSON object per line.

usage: zodb_databases.py FOLDER
"""
import json
import os
import sys

import BTrees.OOBTree
import transaction
import ZODB
import ZODB.blob
from persistent.mapping import PersistentMapping
from persistent.wref import WeakRef
from ZODB.FileStorage import FileStorage
from ZODB.scripts import analyze
from ZODB.serialize import referencesf
from ZODB.utils import u64


def filled(path, **options):
    database = ZODB.DB(FileStorage(path, **options))
    connection = database.open()
    root = connection.root()
    root['tree'] = BTrees.OOBTree.OOBTree()
    for step in range(40):
        for number in range(25):
            root['tree'][f'{step}-{number}'] = PersistentMapping({'n': number, 'text': 'x' * number * 40})
        transaction.commit()
    return database, connection, root


def plain(path):
    return filled(path)[0]


def packed(path):
    database, _, root = filled(path)
    for step in range(30):
        del root['tree'][f'{step}-3']
        root['last'] = root['tree'][f'{step}-4']
        transaction.commit()
    database.pack()
    root['after'] = PersistentMapping()
    transaction.commit()
    return database


def undone(path):
    database, _, root = filled(path)
    for _ in range(5):
        root['tree']['0-0']['n'] += 1
        transaction.commit()
        database.undo(database.undoLog(0, 1)[0]['id'])
        transaction.commit()
    return database


def blobs(path):
    database, _, root = filled(path, blob_dir=path + '.blobs')
    root['blob'] = ZODB.blob.Blob(b'some bytes')
    root['weak'] = WeakRef(root['tree'])
    transaction.commit()
    return database


def many(path):
    database, connection, root = filled(path)
    root['many'] = [PersistentMapping() for _ in range(3000)]
    transaction.commit()
    return database


def current_references(storage):
    found = set()
    for oid, position in storage._index.items():
        data, _ = storage.load(oid)
        found.update((u64(oid), u64(to)) for to in referencesf(data))
    return sorted(found)


def main():
    for make in plain, packed, undone, blobs, many:
        path = os.path.join(sys.argv[1], make.__name__ + '.fs')
        make(path).close()
        storage = FileStorage(path, read_only=True)
        references = current_references(storage)
        storage.close()
        report = analyze.analyze(path)
        print(json.dumps({'name': make.__name__, 'references': len(references), 'records': report.OIDS,
                          'first': references[:50], 'objects': report.COIDS,
                          'classes': sorted(report.TYPESIZE)}))


main()
