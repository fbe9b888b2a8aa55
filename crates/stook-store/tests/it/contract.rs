//! What every store does, whatever it is made of. Each clause gets a new, empty place.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use md5::{Digest, Md5};
use stook_store::{
    Condition, Difference, Download, FileVersion, Proof, Silent, Store, StoreCause, StoreError,
    Stored, StoredFile, TransferObserver, Upload,
};
use tempfile::TempDir;

/// An empty place for files, reached by a store, and behind its back.
pub(crate) trait Place {
    /// A store of the place.
    fn store(&self) -> Box<dyn Store>;
    /// Gives a file other bytes, past the store.
    fn overwrite(&self, name: &str, bytes: &[u8]);
    /// Whether the store cannot hold a file of this name, and has to say so.
    fn refuses(&self, _name: &str) -> bool {
        false
    }
}

/// Names that must travel unchanged.
const NAMES: [&str; 8] = [
    "000000.tar",
    "index.db",
    "-rf",
    "a b",
    "quo\"te'",
    "$(touch x)`y`",
    "ümlaut",
    "percent%20;semi#hash?query&and+plus",
];

type Clause = fn(&dyn Place);

/// Checks every clause.
pub(crate) fn check<P: Place>(make: &dyn Fn() -> P) {
    let clauses: [(&str, Clause); 9] = [
        ("an empty place has no files", is_empty),
        ("what is put comes back", comes_back),
        ("names travel unchanged", keeps_names),
        ("what is no name is refused", refuses_names),
        ("a wrong size or hash is refused", refuses_different),
        ("conditions hold", keeps_conditions),
        ("a changed file is noticed", notices_change),
        ("ranges are read", reads_ranges),
        ("an interrupted transfer ends", ends_interrupted),
    ];
    for (clause, test) in clauses {
        eprintln!("clause: {clause}");
        test(&make());
    }
}

/// A local file to put.
struct Local {
    folder: TempDir,
    bytes: Vec<u8>,
}

impl Local {
    fn new(bytes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("source"), bytes).unwrap();
        Self {
            folder,
            bytes: bytes.to_vec(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, store: &dyn Store, name: &str) -> Result<Stored, StoreError> {
        self.put_if(store, name, &Condition::Always)
    }

    /// Puts it, or has it appear past a store that cannot be written to.
    fn fill(&self, place: &dyn Place, store: &dyn Store, name: &str) -> Stored {
        let put = self.put(store, name);
        if store.abilities().is_writable {
            return put.unwrap();
        }
        let refused = put.unwrap_err();
        assert!(matches!(refused.cause, StoreCause::ReadOnly), "{refused}");
        place.overwrite(name, &self.bytes);
        Stored {
            proof: store.abilities().gives,
            version: store.stat(name).unwrap().unwrap().version,
        }
    }

    fn put_if(
        &self,
        store: &dyn Store,
        name: &str,
        condition: &Condition,
    ) -> Result<Stored, StoreError> {
        let path = self.path("source");
        store.put(&self.upload(name, &path, condition), &Silent)
    }

    fn upload<'a>(
        &self,
        name: &'a str,
        path: &'a std::path::Path,
        condition: &'a Condition,
    ) -> Upload<'a> {
        Upload {
            name,
            path,
            size: self.bytes.len() as u64,
            md5: Some(Md5::digest(&self.bytes).into()),
            condition,
            proof: Proof::Size,
        }
    }
}

/// Gets one file; the bytes, or why they did not come.
fn get(store: &dyn Store, name: &str) -> Result<Vec<u8>, StoreError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("target");
    std::fs::write(&path, b"what was there before, and is longer than nothing").unwrap();
    let download = Download {
        name,
        path: &path,
        size: None,
    };
    let mut result = None;
    store.get(&[download], &Silent, &mut |place, got| {
        assert_eq!(place, 0);
        assert!(result.replace(got).is_none(), "reported twice");
    })?;
    result.expect("every file is reported")?;
    Ok(std::fs::read(&path).unwrap())
}

/// Requires these files, sorted by name, or that the store says that it cannot list them.
fn require_names(store: &dyn Store, expected: &[&str]) {
    match store.list() {
        Err(error) if matches!(error.cause, StoreCause::NoList) => {
            assert!(!store.abilities().is_writable, "{error}");
        }
        files => {
            let names = files.unwrap().into_iter().map(|file| file.name);
            assert_eq!(Vec::from_iter(names), expected);
        }
    }
}

fn prepared(place: &dyn Place) -> Box<dyn Store> {
    let store = place.store();
    if !store.abilities().is_writable {
        let refused = store.prepare().unwrap_err();
        assert!(matches!(refused.cause, StoreCause::ReadOnly), "{refused}");
        return store;
    }
    store.prepare().unwrap();
    store.prepare().unwrap();
    store
}

fn is_empty(place: &dyn Place) {
    let store = prepared(place);
    require_names(&*store, &[]);
    assert_eq!(store.stat("000000.tar").unwrap(), None);
    let missing = get(&*store, "000000.tar").unwrap_err();
    assert!(matches!(missing.cause, StoreCause::NotFound), "{missing}");
    if store.abilities().is_writable {
        store.delete("000000.tar").unwrap();
    }
}

fn comes_back(place: &dyn Place) {
    let store = prepared(place);
    // Nothing, one byte, pieces that are not whole, more than one buffer.
    for len in [0, 1, 4097, (9 << 20) + 5] {
        let bytes: Vec<u8> = (0..len).map(|byte: u32| (byte % 251) as u8).collect();
        let local = Local::new(&bytes);
        let stored = local.fill(place, &*store, "000000.tar");
        assert!(stored.proof >= store.abilities().gives);
        let file = store.stat("000000.tar").unwrap().unwrap();
        assert_eq!(
            (file.size, &file.version),
            (u64::from(len), &stored.version)
        );
        assert!(get(&*store, "000000.tar").unwrap() == bytes, "{len} bytes");
        let path = local.path("source");
        let always = Condition::Always;
        let upload = local.upload("000000.tar", &path, &always);
        store.verify(&upload, &Silent).unwrap();
    }
    if !store.abilities().is_writable {
        let refused = store.delete("000000.tar").unwrap_err();
        assert!(matches!(refused.cause, StoreCause::ReadOnly), "{refused}");
        return;
    }
    store.delete("000000.tar").unwrap();
    require_names(&*store, &[]);
}

fn keeps_names(place: &dyn Place) {
    let store = prepared(place);
    let (refused, kept) = NAMES
        .iter()
        .partition::<Vec<&str>, _>(|name| place.refuses(name));
    for name in refused {
        let put = Local::new(b"bytes").put(&*store, name).unwrap_err();
        for error in [put, get(&*store, name).unwrap_err()] {
            assert!(matches!(error.cause, StoreCause::Character(_)), "{error}");
        }
    }
    for name in &kept {
        Local::new(name.as_bytes()).fill(place, &*store, name);
    }
    let mut expected = kept.clone();
    expected.sort_unstable();
    require_names(&*store, &expected);
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = (0..kept.len())
        .map(|n| folder.path().join(n.to_string()))
        .collect();
    let downloads: Vec<Download<'_>> = kept
        .iter()
        .zip(&paths)
        .map(|(name, path)| Download {
            name,
            path,
            size: Some(name.len() as u64),
        })
        .collect();
    let mut arrived = Vec::new();
    store
        .get(&downloads, &Silent, &mut |place, got| {
            got.unwrap();
            arrived.push(place);
        })
        .unwrap();
    arrived.sort_unstable();
    assert_eq!(arrived, Vec::from_iter(0..kept.len()));
    for (name, path) in kept.iter().zip(&paths) {
        assert_eq!(std::fs::read(path).unwrap(), name.as_bytes());
    }
}

fn refuses_names(place: &dyn Place) {
    let store = prepared(place);
    let local = Local::new(b"bytes");
    for name in ["", ".", "..", "a/b", "../up", "nul\0"] {
        let put = local.put(&*store, name).unwrap_err();
        let got = get(&*store, name).unwrap_err();
        for error in [put, got, store.delete(name).unwrap_err()] {
            assert!(matches!(error.cause, StoreCause::Name), "{name:?}: {error}");
        }
    }
    require_names(&*store, &[]);
}

fn refuses_different(place: &dyn Place) {
    let store = prepared(place);
    let local = Local::new(b"these bytes");
    let path = local.path("source");
    let upload = local.upload("000000.tar", &path, &Condition::Always);
    let wrong_size = Upload { size: 12, ..upload };
    let wrong_hash = Upload {
        md5: Some([1; 16]),
        proof: Proof::ReadBack,
        ..upload
    };
    let wrongs = [
        (
            wrong_size,
            Difference::Size {
                expected: 12,
                found: 11,
            },
        ),
        (wrong_hash, Difference::Hash),
    ];
    for (wrong, expected) in wrongs {
        if !store.abilities().is_writable {
            break;
        }
        let error = store.put(&wrong, &Silent).unwrap_err();
        match error.cause {
            StoreCause::Different(difference) => assert_eq!(difference, expected),
            _ => panic!("{error}"),
        }
        if store.abilities().is_atomic {
            assert_eq!(store.stat("000000.tar").unwrap(), None);
        }
    }
    local.fill(place, &*store, "000000.tar");
    place.overwrite("000000.tar", b"other");
    let size = store.verify(&upload, &Silent).unwrap_err();
    assert!(matches!(size.cause, StoreCause::Different(_)), "{size}");
    if store.abilities().gives == Proof::ReadBack {
        place.overwrite("000000.tar", b"other bytes");
        let read_back = Upload {
            proof: Proof::ReadBack,
            ..upload
        };
        let hash = store.verify(&read_back, &Silent).unwrap_err();
        assert!(matches!(hash.cause, StoreCause::Different(_)), "{hash}");
    }
}

fn keeps_conditions(place: &dyn Place) {
    let store = prepared(place);
    if !store.abilities().is_conditional {
        eprintln!("skipped: this store overwrites");
        return;
    }
    let put = |bytes: &[u8], condition: &Condition| {
        Local::new(bytes).put_if(&*store, "index.db", condition)
    };
    let refused = |result: Result<Stored, StoreError>| match result {
        Err(error) => assert!(matches!(error.cause, StoreCause::Exists), "{error}"),
        Ok(_) => panic!("it was put"),
    };
    let of_nothing = Condition::Unchanged(FileVersion("none".to_owned()));
    refused(put(b"zero", &of_nothing));
    let first = put(b"first", &Condition::New).unwrap().version.unwrap();
    refused(put(b"again", &Condition::New));
    let second = put(b"second", &Condition::Unchanged(first.clone())).unwrap();
    refused(put(b"third", &Condition::Unchanged(first)));
    assert_eq!(get(&*store, "index.db").unwrap(), b"second");
    put(b"fourth", &Condition::Unchanged(second.version.unwrap())).unwrap();
    assert_eq!(get(&*store, "index.db").unwrap(), b"fourth");
    // Of two at once, one.
    let version = store.stat("index.db").unwrap().unwrap().version.unwrap();
    let condition = Condition::Unchanged(version);
    let other = place.store();
    let both = std::thread::scope(|scope| {
        let one = scope.spawn(|| put(b"one", &condition).is_ok());
        let local = Local::new(b"other");
        let other = local.put_if(&*other, "index.db", &condition).is_ok();
        [one.join().unwrap(), other]
    });
    assert_eq!(both.iter().filter(|put| **put).count(), 1, "{both:?}");
}

fn notices_change(place: &dyn Place) {
    let store = prepared(place);
    let before = Local::new(b"before").fill(place, &*store, "000000.tar");
    place.overwrite("000000.tar", b"after!");
    let after = store.stat("000000.tar").unwrap().unwrap();
    if before.version.is_some() {
        assert_ne!(after.version, before.version);
    }
    if !store.abilities().has_ranges {
        eprintln!("skipped: this store has no ranges");
        return;
    }
    let known = StoredFile {
        version: before.version,
        ..after
    };
    let error = store.read_range(&known, 0, &mut [0; 3]).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Changed), "{error}");
}

fn reads_ranges(place: &dyn Place) {
    let store = prepared(place);
    let bytes: Vec<u8> = (0..100_000u32).map(|byte| (byte % 253) as u8).collect();
    Local::new(&bytes).fill(place, &*store, "000000.tar");
    let file = store.stat("000000.tar").unwrap().unwrap();
    if !store.abilities().has_ranges {
        let error = store.read_range(&file, 0, &mut [0; 3]).unwrap_err();
        assert!(matches!(error.cause, StoreCause::NoRanges), "{error}");
        return;
    }
    for (offset, len) in [
        (0, 1),
        (0, 512),
        (12_345, 54_321),
        (99_999, 1),
        (0, 100_000),
    ] {
        let mut buffer = vec![0; len];
        let read = store.read_range(&file, offset as u64, &mut buffer).unwrap();
        assert_eq!(read, len);
        assert!(buffer == bytes[offset..offset + len], "{offset} {len}");
    }
    let pieces = |range| {
        let mut got = Vec::new();
        let read = store.read_pieces(&file, range, &mut |piece| got.extend_from_slice(piece));
        read.map(|()| got)
    };
    assert!(pieces(12_345..100_000).unwrap() == bytes[12_345..]);
    assert_eq!(pieces(5..5).unwrap(), b"");
    let error = pieces(99_000..100_001).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Different(_)), "{error}");
    let mut buffer = [7; 10];
    assert_eq!(store.read_range(&file, 99_995, &mut buffer).unwrap(), 5);
    assert_eq!(store.read_range(&file, 100_000, &mut buffer).unwrap(), 0);
    assert_eq!(store.read_range(&file, 200_000, &mut buffer).unwrap(), 0);
    assert_eq!(store.read_range(&file, 5, &mut []).unwrap(), 0);
    let missing = StoredFile {
        name: "000001.tar".to_owned(),
        version: None,
        ..file
    };
    let error = store.read_range(&missing, 0, &mut buffer).unwrap_err();
    assert!(matches!(error.cause, StoreCause::NotFound), "{error}");
}

/// Asks to end after some questions.
struct Ending(AtomicU64);

impl TransferObserver for Ending {
    fn is_interrupted(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) >= 1
    }
}

fn ends_interrupted(place: &dyn Place) {
    let store = prepared(place);
    let local = Local::new(&vec![3; 20 << 20]);
    let path = local.path("source");
    let upload = local.upload("000000.tar", &path, &Condition::Always);
    if store.abilities().is_writable {
        let error = store.put(&upload, &Ending(AtomicU64::new(0))).unwrap_err();
        assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");
        if store.abilities().is_atomic {
            require_names(&*store, &[]);
        }
    }
    // The same again goes on.
    local.fill(place, &*store, "000000.tar");
    assert!(get(&*store, "000000.tar").unwrap() == local.bytes);
}
