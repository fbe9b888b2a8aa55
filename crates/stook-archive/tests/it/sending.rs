//! Archives whose volumes go to a store: beside a run, after failures, after kills, to somebody else's place.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stook_archive::{
    Archive, ArchiveError, OpenOptions, PullOptions, StoreOptions, TransferError, WriteOptions,
    create, pull, push, status,
};
use stook_store::{
    Abilities, DirectoryStore, Download, Store, StoreCause, StoreError, Stored, StoredFile,
    TransferObserver, Upload,
};
use stook_testkit::{Snapshot, Tree, file, tree};

use crate::by_path::update;
use crate::recorder::Recorder;
use crate::scene::{Scene, all_facts, options};

/// What the store does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// From this put on nobody is logged in.
    Login(u64),
    /// So many puts fail with a lost connection.
    Connection(u64),
}

/// A directory that counts what is put, and fails as its fault says.
#[derive(Debug)]
struct Double {
    directory: DirectoryStore,
    fault: Mutex<Fault>,
    puts: AtomicU64,
    bytes: AtomicU64,
    names: Mutex<Vec<String>>,
}

impl Double {
    fn new(path: PathBuf) -> Arc<Self> {
        Arc::new(Self {
            directory: DirectoryStore::new(path),
            fault: Mutex::new(Fault::None),
            puts: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            names: Mutex::default(),
        })
    }

    fn set(&self, fault: Fault) {
        self.puts.store(0, Relaxed);
        *self.fault.lock().unwrap() = fault;
    }

    fn taken_names(&self) -> Vec<String> {
        std::mem::take(&mut self.names.lock().unwrap())
    }

    fn refusal(&self, file: &str) -> Option<StoreError> {
        let put = self.puts.fetch_add(1, Relaxed);
        let cause = match *self.fault.lock().unwrap() {
            Fault::Login(first) if put >= first => StoreCause::Login {
                command: Some("double login".to_owned()),
            },
            Fault::Connection(last) if put < last => {
                StoreCause::Io(std::io::ErrorKind::ConnectionReset.into())
            }
            _ => return None,
        };
        Some(StoreError {
            operation: "put",
            file: file.to_owned(),
            store: self.name().to_owned(),
            cause,
        })
    }
}

impl Store for Double {
    fn name(&self) -> &str {
        self.directory.name()
    }
    fn abilities(&self) -> Abilities {
        self.directory.abilities()
    }
    fn prepare(&self) -> Result<(), StoreError> {
        self.directory.prepare()
    }
    fn put(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        if let Some(error) = self.refusal(upload.name) {
            return Err(error);
        }
        let stored = self.directory.put(upload, observer)?;
        self.bytes.fetch_add(upload.size, Relaxed);
        self.names.lock().unwrap().push(upload.name.to_owned());
        Ok(stored)
    }
    fn verify(
        &self,
        file: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        self.directory.verify(file, observer)
    }
    fn get(
        &self,
        downloads: &[Download<'_>],
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreError> {
        self.directory.get(downloads, observer, arrived)
    }
    fn read_range(
        &self,
        file: &StoredFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StoreError> {
        self.directory.read_range(file, offset, buffer)
    }
    fn list(&self) -> Result<Vec<StoredFile>, StoreError> {
        self.directory.list()
    }
    fn stat(&self, name: &str) -> Result<Option<StoredFile>, StoreError> {
        self.directory.stat(name)
    }
    fn delete(&self, name: &str) -> Result<(), StoreError> {
        self.directory.delete(name)
    }
}

/// A tree of some volumes, and a store.
struct Sending {
    scene: Scene,
    store: Arc<Double>,
}

/// Whether an error is of a kind that a store has.
fn is(error: &ArchiveError, kind: fn(&TransferError) -> bool) -> bool {
    matches!(error, ArchiveError::Transfer(error) if kind(error))
}

const FILES: usize = 12;

fn sample() -> Tree {
    let mut tree = Tree::new();
    for number in 0..FILES {
        tree.insert(format!("file{number:02}"), file(vec![b'a'; 40_000]));
    }
    tree
}

impl Sending {
    fn new() -> Self {
        let scene = Scene::new(&sample());
        let store = Double::new(scene.beside("store"));
        Self { scene, store }
    }

    fn store_options(&self) -> StoreOptions {
        let store: Arc<dyn Store> = self.store.clone();
        StoreOptions {
            retry_for: Duration::from_secs(5),
            ..StoreOptions::new(store, "double")
        }
    }

    fn options(&self) -> WriteOptions {
        WriteOptions {
            volume_bytes: Some(100_000),
            store: Some(self.store_options()),
            ..options()
        }
    }

    fn create(&self) -> Result<stook_archive::WriteReport, ArchiveError> {
        create(
            self.scene.source(),
            &self.scene.archive(),
            &self.options(),
            &Recorder::new(),
        )
    }

    fn local(&self) -> Vec<String> {
        names(&self.scene.archive())
    }

    fn stored(&self) -> Vec<String> {
        names(&self.scene.beside("store"))
    }

    fn open(&self) -> Archive {
        Archive::open(&self.scene.archive(), &OpenOptions::default()).unwrap()
    }

    /// Fetches the archive from the store into a new folder, and compares what comes out of it with the source.
    fn assert_restores(&self) {
        let folder = self.scene.beside("pulled");
        let pulled = pull(
            &folder,
            &self.store_options(),
            &PullOptions::default(),
            &Recorder::new(),
        );
        assert_eq!(pulled.unwrap().failed, 0);
        let into = self.scene.beside("restored");
        let mut archive = Archive::open(&folder, &OpenOptions::default()).unwrap();
        let recorder = Recorder::new();
        let options = stook_archive::ExtractOptions::default();
        stook_archive::extract(&mut archive, &into, &options, &recorder).unwrap();
        assert_eq!(recorder.failure_texts(), [""; 0]);
        let restored = Snapshot::take(&into).unwrap();
        let difference = self.scene.snapshot().difference(&restored, &all_facts());
        assert_eq!(difference, [""; 0]);
        for folder in [folder, into] {
            stook_testkit::remove_tree(&folder).unwrap();
        }
    }
}

fn names(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

const VOLUMES: [&str; 6] = [
    "000000.tar",
    "000001.tar",
    "000002.tar",
    "000003.tar",
    "000004.tar",
    "000005.tar",
];

#[test]
fn volumes_go_to_the_store_and_the_index_last() {
    let sending = Sending::new();
    let report = sending.create().unwrap();
    assert_eq!(report.sent.unwrap().volumes, 6);
    assert_eq!(sending.local(), ["index.db"]);
    assert_eq!(sending.stored(), [&VOLUMES[..], &["index.db"]].concat());
    assert_eq!(sending.store.taken_names().last().unwrap(), "index.db");
    let found = status(&sending.open(), Some(&*sending.store)).unwrap();
    assert_eq!(found.place.as_deref(), Some("double"));
    assert_eq!(found.is_index_current, Some(true));
    assert!(found.volumes.iter().all(|volume| {
        let proof = &volume.transfer.as_ref().unwrap().proof;
        proof == "read back" && volume.local.is_none() && volume.stored == volume.size
    }));
    sending.assert_restores();
}

#[test]
fn an_update_adds_volumes_and_replaces_the_index() {
    let sending = Sending::new();
    sending.create().unwrap();
    sending.store.taken_names();
    sending.scene.lay(&tree! { "new" => file(b"content") });
    let report = update(
        sending.scene.source(),
        &sending.scene.archive(),
        &sending.options(),
        &Recorder::new(),
    );
    assert_eq!(report.unwrap().sent.unwrap().volumes, 1);
    assert_eq!(sending.store.taken_names(), ["000006.tar", "index.db"]);
    sending.assert_restores();
}

#[test]
fn kept_volumes_stay_and_may_be_deleted() {
    let sending = Sending::new();
    let mut options = sending.options();
    options.store.as_mut().unwrap().keeps_volumes = true;
    let (source, archive) = (sending.scene.source(), sending.scene.archive());
    create(source, &archive, &options, &Recorder::new()).unwrap();
    assert_eq!(sending.local(), [&VOLUMES[..], &["index.db"]].concat());
    let found = status(&sending.open(), Some(&*sending.store)).unwrap();
    assert!(found.volumes.iter().all(|volume| volume.is_safe_to_delete));
    // One that the store has lost is not.
    sending.store.delete("000002.tar").unwrap();
    let found = status(&sending.open(), Some(&*sending.store)).unwrap();
    let unsafe_ones = found
        .volumes
        .iter()
        .filter(|volume| !volume.is_safe_to_delete);
    assert_eq!(
        unsafe_ones
            .map(|volume| volume.volume.0)
            .collect::<Vec<_>>(),
        [2]
    );
    // And is sent again.
    let sent = push(&archive, &options.store.unwrap(), &Recorder::new()).unwrap();
    assert_eq!((sent.volumes, sent.missing), (1, 0));
}

#[test]
fn an_expired_login_ends_the_run_and_the_same_command_goes_on() {
    let sending = Sending::new();
    sending.store.set(Fault::Login(3));
    let error = sending.create().unwrap_err();
    let ArchiveError::Store(store) = &error else {
        panic!("{error}")
    };
    assert!(matches!(store.cause, StoreCause::Login { .. }), "{error}");
    let first = sending.store.taken_names();
    assert_eq!(first.len(), 3);
    sending.store.set(Fault::None);
    sending.create().unwrap();
    // Nothing was sent twice.
    let mut all = [first, sending.store.taken_names()].concat();
    all.sort();
    assert_eq!(all, [&VOLUMES[..], &["index.db"]].concat());
    sending.assert_restores();
}

#[test]
fn a_lost_connection_is_tried_again() {
    let sending = Sending::new();
    sending.store.set(Fault::Connection(2));
    let recorder = Recorder::new();
    let (source, archive) = (sending.scene.source(), sending.scene.archive());
    create(source, &archive, &sending.options(), &recorder).unwrap();
    assert_eq!(recorder.notes().len(), 2, "{:?}", recorder.notes());
    assert_eq!(sending.local(), ["index.db"]);
    sending.assert_restores();
}

#[test]
fn what_arrived_before_a_kill_is_not_sent_again() {
    let sending = Sending::new();
    sending.create().unwrap();
    sending.store.taken_names();
    // As if it had been killed before anything was on record, and the local volumes still there.
    let folder = sending.scene.archive();
    for name in VOLUMES {
        std::fs::copy(sending.scene.beside("store").join(name), folder.join(name)).unwrap();
    }
    forget(&sending);
    let sent = push(&folder, &sending.store_options(), &Recorder::new()).unwrap();
    assert_eq!(sent.missing, 0);
    assert_eq!(sending.store.taken_names(), ["index.db"]);
}

/// Makes the archive forget what was sent, by way of another place and back.
fn forget(sending: &Sending) {
    let elsewhere = Double::new(sending.scene.beside("elsewhere"));
    let store: Arc<dyn Store> = elsewhere;
    let options = StoreOptions {
        changes_store: true,
        keeps_volumes: true,
        ..StoreOptions::new(store, "elsewhere")
    };
    push(&sending.scene.archive(), &options, &Recorder::new()).unwrap();
    let back = StoreOptions {
        changes_store: true,
        keeps_volumes: true,
        ..sending.store_options()
    };
    push(&sending.scene.archive(), &back, &Recorder::new()).unwrap();
    let taken = sending.store.taken_names();
    assert_eq!(taken, ["index.db"]);
}

#[test]
fn another_store_is_refused_unless_that_is_meant() {
    let sending = Sending::new();
    sending.create().unwrap();
    let elsewhere: Arc<dyn Store> = Double::new(sending.scene.beside("elsewhere"));
    let mut options = StoreOptions::new(elsewhere, "elsewhere");
    let refused = push(&sending.scene.archive(), &options, &Recorder::new()).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "cannot send to `elsewhere`: the volumes of this archive are in `double`"
    );
    assert!(!sending.scene.beside("elsewhere").exists());
    // Volumes that are only in the old store cannot move.
    options.changes_store = true;
    let missing = push(&sending.scene.archive(), &options, &Recorder::new()).unwrap_err();
    assert!(
        is(&missing, |error| matches!(
            error,
            TransferError::Missing { .. }
        )),
        "{missing}"
    );
}

#[test]
fn a_store_with_an_archive_is_not_overwritten() {
    let sending = Sending::new();
    sending.create().unwrap();
    let other = Scene::new(&tree! { "b" => file(b"other") });
    let before = names(&sending.scene.beside("store"));
    let error = create(
        other.source(),
        &other.archive(),
        &sending.options(),
        &Recorder::new(),
    );
    let error = error.unwrap_err();
    assert!(
        is(&error, |error| matches!(
            error,
            TransferError::HoldsArchive { .. }
        )),
        "{error}"
    );
    assert_eq!(names(&sending.scene.beside("store")), before);
}

#[test]
fn an_archive_that_differs_in_the_middle_is_another() {
    let sending = Sending::new();
    sending.create().unwrap();
    let mut tree = sample();
    tree.insert("file06", file(vec![b'b'; 40_000]));
    let other = Scene::new(&tree);
    other.create_with(
        &WriteOptions {
            volume_bytes: Some(100_000),
            ..options()
        },
        &Recorder::new(),
    );
    let pushed = push(&other.archive(), &sending.store_options(), &Recorder::new());
    let error = pushed.unwrap_err();
    assert!(
        is(&error, |error| matches!(
            error,
            TransferError::Diverged { .. }
        )),
        "{error}"
    );
}

#[test]
fn of_two_machines_that_update_one_store_the_second_is_refused() {
    let sending = Sending::new();
    sending.create().unwrap();
    let other = sending.scene.beside("other-machine");
    let pulled = PullOptions {
        only_index: true,
        ..PullOptions::default()
    };
    pull(&other, &sending.store_options(), &pulled, &Recorder::new()).unwrap();
    sending.scene.lay(&tree! { "new" => file(b"content") });
    let recorder = Recorder::new();
    update(
        sending.scene.source(),
        &other,
        &sending.options(),
        &recorder,
    )
    .unwrap();
    let archive = sending.scene.archive();
    let second = update(
        sending.scene.source(),
        &archive,
        &sending.options(),
        &recorder,
    );
    let error = second.unwrap_err();
    assert!(
        is(&error, |error| matches!(
            error,
            TransferError::Diverged { .. }
        )),
        "{error}"
    );
    // After it has fetched the index it goes on.
    let fetched = pull(
        &archive,
        &sending.store_options(),
        &pulled,
        &Recorder::new(),
    )
    .unwrap();
    assert!(fetched.index);
    let report = update(
        sending.scene.source(),
        &archive,
        &sending.options(),
        &recorder,
    );
    assert_eq!(report.unwrap().members, 0);
}

#[test]
fn a_spool_smaller_than_a_volume_is_refused_before_anything() {
    let sending = Sending::new();
    let mut options = sending.options();
    options.store.as_mut().unwrap().spool_bytes = Some(99_999);
    let (source, archive) = (sending.scene.source(), sending.scene.archive());
    let error = create(source, &archive, &options, &Recorder::new()).unwrap_err();
    assert!(error.to_string().contains("takes up to 100000"), "{error}");
    assert!(!sending.scene.beside("store").exists());
    // One that is as large is enough.
    options.store.as_mut().unwrap().spool_bytes = Some(100_000);
    create(source, &archive, &options, &Recorder::new()).unwrap();
    sending.assert_restores();
}

#[test]
fn a_foreign_volume_in_the_store_keeps_its_number() {
    let sending = Sending::new();
    let store = sending.scene.beside("store");
    std::fs::create_dir(&store).unwrap();
    std::fs::write(store.join("000002.tar"), b"of somebody else").unwrap();
    sending.create().unwrap();
    let foreign = std::fs::read(store.join("000002.tar")).unwrap();
    assert_eq!(foreign, b"of somebody else");
    sending.assert_restores();
}

#[test]
fn a_volume_that_is_nowhere_is_named_and_the_rest_goes_on() {
    let sending = Sending::new();
    sending.create().unwrap();
    sending.store.delete("000003.tar").unwrap();
    sending.scene.lay(&tree! { "new" => file(b"content") });
    let recorder = Recorder::new();
    let archive = sending.scene.archive();
    let report = update(
        sending.scene.source(),
        &archive,
        &sending.options(),
        &recorder,
    );
    assert_eq!(report.unwrap().sent.unwrap().missing, 1);
    assert_eq!(recorder.failed_paths(), ["000003.tar"]);
    let found = status(&sending.open(), Some(&*sending.store)).unwrap();
    let missing = found
        .volumes
        .iter()
        .filter(|volume| volume.is_missing(true));
    assert_eq!(
        missing.map(|volume| volume.volume.0).collect::<Vec<_>>(),
        [3]
    );
}
