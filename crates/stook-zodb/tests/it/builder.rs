//! Makes databases: transactions of records, with right headers unless a test changes them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use stook_testkit::TempDir;
use stook_zodb::DataFile;

/// What a record has.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    Pickle(&'a [u8]),
    Pointer(u64),
}

/// A database under construction.
pub(crate) struct Builder {
    pub(crate) bytes: Vec<u8>,
    /// Where the current record of each object is.
    pub(crate) index: BTreeMap<u64, u64>,
    /// Where transactions begin.
    pub(crate) transactions: Vec<u64>,
    pub(crate) tid: u64,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self {
            bytes: b"FS30".to_vec(),
            index: BTreeMap::new(),
            transactions: Vec::new(),
            tid: 0x0340_0000_0000_0000,
        }
    }

    /// Adds a transaction of objects with pickles.
    pub(crate) fn commit(&mut self, objects: &[(u64, &[u8])]) -> &mut Self {
        let records: Vec<_> = objects
            .iter()
            .map(|(oid, pickle)| (*oid, Content::Pickle(pickle)))
            .collect();
        self.transaction(b' ', &records)
    }

    pub(crate) fn transaction(&mut self, status: u8, records: &[(u64, Content<'_>)]) -> &mut Self {
        let start = self.bytes.len() as u64;
        self.transactions.push(start);
        self.tid += 1 << 32;
        let (before, head) = (self.index.clone(), self.bytes.len());
        self.put(self.tid);
        self.put(0);
        self.bytes.push(status);
        self.bytes.extend([0, 5, 0, 3, 0, 0]);
        self.bytes.extend(b"adminadd");
        for (oid, content) in records {
            let at = self.bytes.len() as u64;
            let previous = if status == b'p' {
                0
            } else {
                before.get(oid).copied().unwrap_or(0)
            };
            self.record(*oid, previous, start, *content);
            if status != b'u' {
                self.index.insert(*oid, at);
            }
        }
        let length = self.bytes.len() as u64 - start;
        self.bytes[head + 8..head + 16].copy_from_slice(&length.to_be_bytes());
        self.put(length);
        self
    }

    fn record(&mut self, oid: u64, previous: u64, start: u64, content: Content<'_>) {
        for number in [oid, self.tid, previous, start] {
            self.put(number);
        }
        self.bytes.extend([0, 0]);
        match content {
            Content::Pickle(pickle) => {
                self.put(pickle.len() as u64);
                self.bytes.extend(pickle);
            }
            Content::Pointer(pointer) => {
                self.put(0);
                self.put(pointer);
            }
        }
    }

    fn put(&mut self, number: u64) {
        self.bytes.extend(number.to_be_bytes());
    }

    /// The current record of an object.
    pub(crate) fn at(&self, oid: u64) -> u64 {
        self.index[&oid]
    }

    pub(crate) fn end(&self) -> u64 {
        self.bytes.len() as u64
    }
}

/// The pickles of an object of class `module.Class` with references to others.
pub(crate) fn object(class: &str, references: &[u64]) -> Vec<u8> {
    let mut data = format!("\u{80}\u{3}cmodule\n{class}\nq\0.")
        .chars()
        .map(|c| c as u8)
        .collect::<Vec<u8>>();
    data.extend(b"\x80\x03}q\x01X\x04\0\0\0refsq\x02](");
    for oid in references {
        data.extend(b"C\x08");
        data.extend(oid.to_be_bytes());
        data.extend(b"cmodule\nOther\n\x86Q");
    }
    data.extend(b"es.");
    data
}

/// A folder with a database.
pub(crate) struct Place {
    folder: TempDir,
}

impl Place {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let place = Self {
            folder: TempDir::new().unwrap(),
        };
        std::fs::write(place.path(), bytes).unwrap();
        place
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("Data.fs")
    }

    pub(crate) fn index_path(&self) -> PathBuf {
        self.folder.join("Data.fs.index")
    }

    pub(crate) fn open(&self) -> DataFile {
        DataFile::open(&self.path()).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<_> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Twelve transactions over ten objects, one of them stored twice in the last one.
pub(crate) fn sample() -> Builder {
    let mut builder = Builder::new();
    let root = object("Root", &[1, 2, 3, 4, 5, 6, 7, 8, 9]);
    builder.commit(&[(0, &root)]);
    for round in 0..10 {
        let one = object("A", &[0]);
        let other = object("B", &[1]);
        builder.commit(&[(1 + round % 9, &one), (1 + (round + 3) % 9, &other)]);
    }
    let last = object("C", &[2]);
    builder.commit(&[(4, &last), (5, &last), (4, &last)]);
    builder
}
