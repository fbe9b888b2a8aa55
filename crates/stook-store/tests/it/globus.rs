//! Globus, through a double of `globus`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use md5::{Digest, Md5};
use stook_store::{
    Advice, Condition, Difference, Download, EndpointId, GlobusOptions, GlobusStore, Interruption,
    Proof, Silent, Store, StoreCause, StoreError, Stored, TransferObserver, Upload,
};
use stook_testkit::doubles::{Double, Trouble};
use tempfile::TempDir;

use crate::contract::{self, Place};
use crate::watch::When;

const LOCAL: &str = "11111111-1111-1111-1111-111111111111";
const REMOTE: &str = "22222222-2222-2222-2222-222222222222";
const PATH: &str = "/~/a run";

struct Globus {
    double: Double,
    local: TempDir,
    options: GlobusOptions,
}

impl Globus {
    fn new() -> Self {
        let double = Double::globus();
        double.add_endpoint(LOCAL, Some(Path::new("/")));
        double.add_endpoint(REMOTE, None);
        let local = tempfile::tempdir().unwrap();
        let scratch = local.path().join("scratch");
        std::fs::create_dir(&scratch).unwrap();
        let mut options = GlobusOptions::new(EndpointId::parse(LOCAL).unwrap(), scratch);
        options.program.path = double.program();
        options.poll_every = Duration::from_millis(10);
        Self {
            double,
            local,
            options,
        }
    }

    fn prepared() -> (Self, GlobusStore) {
        let globus = Self::new();
        let store = globus.globus();
        store.prepare().unwrap();
        (globus, store)
    }

    fn globus(&self) -> GlobusStore {
        let endpoint = EndpointId::parse(REMOTE).unwrap();
        GlobusStore::new(endpoint, PATH, self.options.clone())
    }

    fn set(&self, trouble: &Trouble) {
        self.double.set(trouble);
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<Stored, StoreError> {
        self.put_watched(name, bytes, &Silent)
    }

    /// Puts a file, which is the same one if it has these bytes already.
    fn put_watched(
        &self,
        name: &str,
        bytes: &[u8],
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        let path = self.local.path().join("a volume");
        if std::fs::read(&path).ok().as_deref() != Some(bytes) {
            std::fs::write(&path, bytes).unwrap();
        }
        let upload = upload(name, &path, bytes, Proof::Size);
        self.globus().put(&upload, observer)
    }

    fn verify(&self, name: &str, bytes: &[u8], proof: Proof) -> Result<Stored, StoreError> {
        let path = Path::new("/no/such/file");
        self.globus()
            .verify(&upload(name, path, bytes, proof), &Silent)
    }

    fn remote(&self, name: &str) -> PathBuf {
        self.double.endpoint_path(REMOTE, &format!("{PATH}/{name}"))
    }

    fn content(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.remote(name)).unwrap()
    }

    /// Returns the names of all files in the directory of the endpoint, hidden ones too.
    fn all_names(&self) -> Vec<String> {
        names_in(&self.remote(""))
    }
}

impl Place for Globus {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.globus())
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.remote(name), bytes).unwrap();
    }
}

fn upload<'a>(name: &'a str, path: &'a Path, bytes: &[u8], proof: Proof) -> Upload<'a> {
    Upload {
        name,
        path,
        size: bytes.len() as u64,
        md5: Some(Md5::digest(bytes).into()),
        condition: &Condition::Always,
        proof,
    }
}

fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn globus_keeps_the_contract() {
    contract::check(&Globus::new);
}

type Got = Result<(), StoreError>;

/// Gets files of 10,000 bytes; returns what was reported of each, and the end.
fn get(
    store: &GlobusStore,
    names: &[String],
    folder: &Path,
    observer: &dyn TransferObserver,
) -> (Vec<Option<Got>>, Got) {
    let paths: Vec<PathBuf> = names
        .iter()
        .map(|name| folder.join(format!("got {name}")))
        .collect();
    let both = names.iter().zip(&paths);
    let downloads: Vec<Download<'_>> = both
        .map(|(name, path)| Download {
            name,
            path,
            size: Some(10_000),
        })
        .collect();
    let mut each: Vec<_> = downloads.iter().map(|_| None).collect();
    let end = store.get(&downloads, observer, &mut |place, got| {
        each[place] = Some(got);
    });
    (each, end)
}

/// Waits until the last task was cancelled, by a program that nobody waits for.
fn await_cancel(globus: &Globus) {
    for _ in 0..6000 {
        if globus.double.task_states().last().unwrap() == "FAILED" {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the task goes on");
}

/// Makes files in the store.
fn fill(globus: &Globus, files: usize) -> Vec<String> {
    let names: Vec<String> = (0..files).map(|n| format!("{n:06x}.tar")).collect();
    for name in &names {
        globus.overwrite(name, name.repeat(1000).as_bytes());
    }
    names
}

#[test]
fn twenty_files_come_by_one_task_and_move_once() {
    let (globus, store) = Globus::prepared();
    let names = fill(&globus, 20);
    let transfers = globus.double.count("transfer ");
    let folder = tempfile::tempdir().unwrap();
    let (each, end) = get(&store, &names, folder.path(), &Silent);
    end.unwrap();
    for (got, name) in each.into_iter().zip(&names) {
        got.unwrap().unwrap();
        let path = folder.path().join(format!("got {name}"));
        assert_eq!(std::fs::read(path).unwrap(), name.repeat(1000).as_bytes());
    }
    assert_eq!(globus.double.count("transfer ") - transfers, 1);
    assert_eq!(globus.double.counters().bytes_out, 200_000);
    assert_eq!(names_in(folder.path()).len(), 20);
}

#[test]
fn what_is_missing_or_of_another_size_is_known_without_a_task() {
    let (globus, store) = Globus::prepared();
    let transfers = globus.double.count("transfer ");
    globus.overwrite("000000.tar", b"changed since");
    let names = ["000000.tar", "none.tar"].map(str::to_owned);
    let folder = tempfile::tempdir().unwrap();
    let (each, end) = get(&store, &names, folder.path(), &Silent);
    end.unwrap();
    let [Some(Err(changed)), Some(Err(missing))] = &each[..] else {
        panic!("{each:?}");
    };
    assert!(
        matches!(changed.cause, StoreCause::Different(_)),
        "{changed}"
    );
    assert!(matches!(missing.cause, StoreCause::NotFound), "{missing}");
    assert_eq!(globus.double.count("transfer "), transfers);
    assert_eq!(names_in(folder.path()), Vec::<String>::new());
}

#[test]
fn a_missing_program_and_a_missing_endpoint_are_told() {
    let mut globus = Globus::new();
    let nowhere = EndpointId::parse("nersc").unwrap();
    let store = GlobusStore::new(nowhere, "/run", globus.options.clone());
    let error = store.list().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot list `globus://9cd89cfd-6d04-11e5-ba46-22000b92c6ec/run`: no such place"
    );
    globus.options.program.path = "stook-no-such-globus".into();
    let error = globus.globus().prepare().unwrap_err();
    assert!(matches!(error.cause, StoreCause::NoProgram(_)), "{error}");
    assert_eq!(error.advice(), Advice::GiveUp);
    let scratch = globus.local.path().join("scratch");
    assert_eq!(names_in(&scratch), Vec::<String>::new());
}

fn require_login(error: &StoreError) {
    match &error.cause {
        StoreCause::Login { command } => assert_eq!(command.as_deref(), Some("globus login")),
        _ => panic!("{error}"),
    }
    assert_eq!(error.advice(), Advice::Login);
}

#[test]
fn who_is_not_logged_in_learns_how() {
    let (globus, store) = Globus::prepared();
    let before = globus.double.counters().bytes_in;
    for exits_zero in [false, true] {
        globus.set(&Trouble {
            login_operations: Some(0),
            exits_zero,
            ..Trouble::default()
        });
        require_login(&store.prepare().unwrap_err());
        require_login(&store.list().unwrap_err());
        require_login(&store.stat("index.db").unwrap_err());
        require_login(&store.delete("index.db").unwrap_err());
        require_login(&globus.put("index.db", b"x").unwrap_err());
        require_login(&globus.verify("index.db", b"x", Proof::Size).unwrap_err());
        let names = ["index.db".to_owned()];
        require_login(
            &get(&store, &names, globus.local.path(), &Silent)
                .1
                .unwrap_err(),
        );
    }
    assert_eq!(globus.double.counters().bytes_in, before);
}

#[test]
fn a_put_whose_end_nobody_saw_is_found_again_and_sent_once() {
    let (globus, _store) = Globus::prepared();
    let before = globus.double.counters().bytes_in;
    let bytes = vec![7; 100_000];
    globus.set(&Trouble {
        bytes_per_second: Some(50_000),
        login_operations: Some(4),
        ..Trouble::default()
    });
    require_login(&globus.put("a.tar", &bytes).unwrap_err());
    globus.set(&Trouble {
        bytes_per_second: Some(50_000),
        ..Trouble::default()
    });
    let has_begun = When(|| globus.double.counters().bytes_in > before);
    let error = globus.put_watched("a.tar", &bytes, &has_begun).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");
    assert_eq!(globus.double.task_states().last().unwrap(), "ACTIVE");
    globus.put("a.tar", &bytes).unwrap();
    assert_eq!(globus.content("a.tar"), bytes);
    assert_eq!(globus.double.counters().bytes_in - before, 100_000);

    // It may have ended before it is looked for.
    globus.set(&Trouble {
        hang_on: Some("task show".to_owned()),
        ..Trouble::default()
    });
    let is_submitted = When(|| {
        globus.double.count("task show") > 0
            && globus.double.log().last().unwrap().starts_with("task show")
    });
    let error = globus
        .put_watched("b.tar", &bytes, &is_submitted)
        .unwrap_err();
    assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");
    globus.set(&Trouble::default());
    globus.put("b.tar", &bytes).unwrap();
    assert_eq!(globus.content("b.tar"), bytes);
    assert_eq!(globus.double.counters().bytes_in - before, 200_000);
    // The same file again, without such a task, is sent again.
    globus.put("b.tar", &bytes).unwrap();
    assert_eq!(globus.double.counters().bytes_in - before, 300_000);
}

#[test]
fn a_task_goes_on_while_the_service_is_out_of_reach() {
    let (globus, _store) = Globus::prepared();
    let before = globus.double.counters().bytes_in;
    // After the search for an earlier task, and the submission.
    globus.set(&Trouble {
        unreachable: Some((3, 20)),
        ..Trouble::default()
    });
    globus.put("a.tar", b"bytes").unwrap();
    assert_eq!(globus.double.counters().bytes_in - before, 5);
    globus.set(&Trouble {
        unreachable: Some((1, 1)),
        ..Trouble::default()
    });
    let error = globus.put("a.tar", b"other").unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("globus says: The service is out of reach"),
        "{error}"
    );
    assert_eq!(error.advice(), Advice::Retry);
}

#[test]
fn a_get_that_is_interrupted_ends_its_task() {
    let (globus, store) = Globus::prepared();
    let names = fill(&globus, 3);
    globus.set(&Trouble {
        hang_at: Some(2),
        ..Trouble::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let is_half = When(|| globus.double.counters().bytes_out == 15_000);
    let (each, end) = get(&store, &names, folder.path(), &is_half);
    let error = end.unwrap_err();
    assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");
    assert!(matches!(each[..], [Some(Ok(())), None, None]), "{each:?}");
    assert_eq!(names_in(folder.path()), ["got 000000.tar"]);
    await_cancel(&globus);
}

#[test]
fn a_transfer_that_fails_half_way_leaves_nothing_and_can_be_repeated() {
    let (globus, store) = Globus::prepared();
    globus.put("index.db", b"the first index").unwrap();
    globus.set(&Trouble {
        fail_at: Some(1),
        ..Trouble::default()
    });
    let error = globus.put("index.db", b"another index").unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("globus says: ENDPOINT_ERROR: The connection to the endpoint was lost"),
        "{error}"
    );
    assert_eq!(error.advice(), Advice::Retry);
    assert_eq!(globus.content("index.db"), b"the first index");
    assert_eq!(globus.all_names(), ["index.db"]);
    globus.put("index.db", b"another index").unwrap();
    assert_eq!(globus.content("index.db"), b"another index");
    assert_eq!(globus.all_names(), ["index.db"]);

    let names = fill(&globus, 3);
    globus.set(&Trouble {
        fail_at: Some(2),
        ..Trouble::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let (each, end) = get(&store, &names, folder.path(), &Silent);
    assert_eq!(end.unwrap_err().advice(), Advice::Retry);
    assert!(matches!(each[..], [Some(Ok(())), None, None]), "{each:?}");
    assert_eq!(names_in(folder.path()), ["got 000000.tar"]);
}

#[test]
fn a_success_that_is_none_is_noticed() {
    let (globus, store) = Globus::prepared();
    let truncated = Trouble {
        truncate_at: Some(1),
        ..Trouble::default()
    };
    globus.set(&truncated);
    let error = globus.put("000000.tar", &[1; 10_000]).unwrap_err();
    let of_size = StoreCause::Different(Difference::Size {
        expected: 10_000,
        found: 5000,
    });
    assert_eq!(error.cause.to_string(), of_size.to_string());
    assert_eq!(globus.all_names(), Vec::<String>::new());

    globus.set(&Trouble {
        lies: true,
        ..Trouble::default()
    });
    let error = globus.put("000000.tar", &[1; 10_000]).unwrap_err();
    let of_hash = StoreCause::Different(Difference::Hash);
    assert_eq!(error.cause.to_string(), of_hash.to_string());
    assert_eq!(globus.all_names(), Vec::<String>::new());

    let names = fill(&globus, 1);
    globus.set(&truncated);
    let folder = tempfile::tempdir().unwrap();
    let (mut each, end) = get(&store, &names, folder.path(), &Silent);
    end.unwrap();
    let error = each.remove(0).unwrap().unwrap_err();
    assert_eq!(error.cause.to_string(), of_size.to_string());
    assert_eq!(names_in(folder.path()), Vec::<String>::new());
}

#[test]
fn a_full_store_says_so_and_keeps_what_it_has() {
    let (globus, _store) = Globus::prepared();
    globus.put("index.db", b"the first index").unwrap();
    globus.set(&Trouble {
        capacity: Some(100),
        ..Trouble::default()
    });
    let error = globus.put("index.db", &[1; 1000]).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Full), "{error}");
    assert_eq!(error.advice(), Advice::GiveUp);
    assert_eq!(globus.content("index.db"), b"the first index");
    assert_eq!(globus.all_names(), ["index.db"]);
}

#[test]
fn an_index_that_a_killed_run_left_aside_comes_back() {
    let (globus, store) = Globus::prepared();
    globus.overwrite(".index.db.stook-previous", b"the first index");
    assert_eq!(store.list().unwrap(), []);
    store.prepare().unwrap();
    assert_eq!(globus.content("index.db"), b"the first index");
    // One that was left behind is no hindrance.
    globus.overwrite(".index.db.stook-previous", b"older");
    globus.put("index.db", b"the second index").unwrap();
    assert_eq!(globus.content("index.db"), b"the second index");
    assert_eq!(globus.all_names(), ["index.db"]);
}

#[test]
fn a_task_that_stands_still_runs_out_of_patience() {
    let (mut globus, _store) = Globus::prepared();
    globus.options.patience = Duration::from_millis(500);
    globus.set(&Trouble {
        hang_at: Some(1),
        ..Trouble::default()
    });
    let error = globus.put("a.tar", &[1; 1000]).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Timeout(0)), "{error}");
    assert_eq!(error.advice(), Advice::Retry);
    await_cancel(&globus);
    globus.set(&Trouble::default());
    globus.options.patience = Duration::from_secs(60);
    globus.put("a.tar", &[1; 1000]).unwrap();
}

#[test]
fn a_program_that_hangs_ends_by_patience_or_interruption() {
    let (mut globus, _store) = Globus::prepared();
    let hang = |hang_on: &str| {
        globus.double.set(&Trouble {
            hang_on: Some(hang_on.to_owned()),
            ignores_term: true,
            ..Trouble::default()
        });
    };
    hang("task show");
    let is_submitted = When(|| globus.double.count("task show") > 1);
    let error = globus
        .put_watched("a.tar", b"bytes", &is_submitted)
        .unwrap_err();
    assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");

    hang("ls");
    let is_asked = AtomicBool::new(false);
    globus.options.program.interruption =
        Interruption::new(move || is_asked.swap(true, Ordering::Relaxed));
    let error = globus.globus().list().unwrap_err();
    assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");

    globus.options.program.interruption = Interruption::default();
    globus.options.program.patience = Duration::from_millis(300);
    let error = globus.globus().list().unwrap_err();
    assert!(matches!(error.cause, StoreCause::Timeout(0)), "{error}");
}

#[test]
fn names_that_would_end_a_line_are_refused() {
    let (globus, store) = Globus::prepared();
    let sessions = globus.double.counters().sessions;
    for name in ["a\nb", "a\rb", "a\u{2028}b"] {
        let errors = [
            globus.put(name, b"bytes").unwrap_err(),
            store.stat(name).unwrap_err(),
            store.delete(name).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error.cause, StoreCause::Character(_)), "{error}");
        }
    }
    assert_eq!(globus.double.counters().sessions, sessions);
}

#[test]
fn proofs_are_told_apart() {
    let (globus, _store) = Globus::prepared();
    let stored = globus.put("a.tar", b"bytes").unwrap();
    assert_eq!(stored.proof, Proof::HashedInTransfer);
    let verify = |bytes, proof| {
        globus
            .verify("a.tar", bytes, proof)
            .map(|stored| stored.proof)
    };
    assert_eq!(verify(b"bytes", Proof::Size).unwrap(), Proof::Size);
    assert_eq!(verify(b"bytes", Proof::ReadBack).unwrap(), Proof::ReadBack);
    globus.overwrite("a.tar", b"bytez");
    assert_eq!(verify(b"bytes", Proof::Size).unwrap(), Proof::Size);
    let error = verify(b"bytes", Proof::ReadBack).unwrap_err();
    assert!(
        matches!(error.cause, StoreCause::Different(Difference::Hash)),
        "{error}"
    );
    globus.overwrite("a.tar", b"longer bytes");
    let error = verify(b"bytes", Proof::Size).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Different(_)), "{error}");
    let scratch = globus.local.path().join("scratch");
    assert_eq!(names_in(&scratch), Vec::<String>::new());
}
