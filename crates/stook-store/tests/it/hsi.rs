//! HPSS, through a double of `hsi`.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use md5::{Digest, Md5};
use stook_store::{
    Advice, Condition, Difference, Download, HsiOptions, HsiStore, Interruption, ProgramOptions,
    Proof, Silent, Store, StoreCause, StoreError, Stored, TransferObserver, Upload,
};
use stook_testkit::doubles::{Double, Trouble};
use tempfile::TempDir;

use crate::contract::{self, Place};
use crate::watch::When;

const PATH: &str = "/home/u/user/a run";

struct Hpss {
    double: Double,
    local: TempDir,
    options: HsiOptions,
}

impl Hpss {
    fn new() -> Self {
        let double = Double::hsi();
        let options = HsiOptions {
            program: ProgramOptions::new(double.program()),
            ..HsiOptions::default()
        };
        Self {
            double,
            local: tempfile::tempdir().unwrap(),
            options,
        }
    }

    fn prepared() -> (Self, HsiStore) {
        let hpss = Self::new();
        let store = hpss.hsi();
        store.prepare().unwrap();
        (hpss, store)
    }

    fn hsi(&self) -> HsiStore {
        HsiStore::new(PATH, self.options.clone())
    }

    fn set(&self, trouble: &Trouble) {
        self.double.set(trouble);
    }

    fn put(&self, name: &str, bytes: &[u8], proof: Proof) -> Result<Stored, StoreError> {
        self.put_watched(name, bytes, proof, &Silent)
    }

    fn put_watched(
        &self,
        name: &str,
        bytes: &[u8],
        proof: Proof,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        let path = self.local.path().join("a volume");
        std::fs::write(&path, bytes).unwrap();
        self.hsi().put(&upload(name, &path, bytes, proof), observer)
    }

    fn verify(&self, name: &str, bytes: &[u8], proof: Proof) -> Result<Stored, StoreError> {
        let path = Path::new("/no/such/file");
        self.hsi()
            .verify(&upload(name, path, bytes, proof), &Silent)
    }

    fn remote(&self, name: &str) -> Option<Vec<u8>> {
        self.double.content(&format!("{PATH}/{name}"))
    }

    /// Returns the names of all files in the directory in HPSS, hidden ones too.
    fn all_names(&self) -> Vec<String> {
        let folder = self.double.folder().join("data").join(&PATH[1..]);
        names_in(&folder)
    }
}

impl Place for Hpss {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.hsi())
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        self.double.overwrite(&format!("{PATH}/{name}"), bytes);
    }

    fn refuses(&self, name: &str) -> bool {
        !name.is_ascii() || name.contains(['"', '\'', '`', '?', ';'])
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
fn hpss_keeps_the_contract() {
    contract::check(&Hpss::new);
}

/// Puts files of these sizes; returns their names.
fn fill(hpss: &Hpss, files: usize) -> Vec<String> {
    let names: Vec<String> = (0..files).map(|n| format!("{n:06x}.tar")).collect();
    for name in &names {
        hpss.put(name, name.repeat(1000).as_bytes(), Proof::Size)
            .unwrap();
    }
    names
}

fn targets(folder: &Path, names: &[String]) -> Vec<PathBuf> {
    names
        .iter()
        .map(|name| folder.join(format!("got {name}")))
        .collect()
}

fn downloads<'a>(names: &'a [String], paths: &'a [PathBuf]) -> Vec<Download<'a>> {
    let both = names.iter().zip(paths);
    both.map(|(name, path)| Download {
        name,
        path,
        size: Some(10_000),
    })
    .collect()
}

type Got = Result<(), StoreError>;

/// Gets all; returns what was reported of each, and the end.
fn get(
    store: &HsiStore,
    downloads: &[Download<'_>],
    observer: &dyn TransferObserver,
) -> (Vec<Option<Got>>, Got) {
    let mut each: Vec<_> = downloads.iter().map(|_| None).collect();
    let end = store.get(downloads, observer, &mut |place, got| {
        each[place] = Some(got);
    });
    (each, end)
}

#[test]
fn twenty_files_on_three_tapes_cause_three_mounts_and_move_once() {
    let (hpss, store) = Hpss::prepared();
    hpss.set(&Trouble {
        tapes: 3,
        ..Trouble::default()
    });
    let names = fill(&hpss, 20);
    let before = hpss.double.counters();
    assert_eq!(before.bytes_in, 200_000);
    let folder = tempfile::tempdir().unwrap();
    let paths = targets(folder.path(), &names);
    let (each, end) = get(&store, &downloads(&names, &paths), &Silent);
    end.unwrap();
    for (got, (name, path)) in each.into_iter().zip(names.iter().zip(&paths)) {
        got.unwrap().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), name.repeat(1000).as_bytes());
    }
    let after = hpss.double.counters();
    assert_eq!(after.sessions - before.sessions, 1);
    assert_eq!(after.mounts - before.mounts, 3);
    assert_eq!((after.rewinds, after.bytes_out), (0, 200_000));
    assert_eq!(names_in(folder.path()).len(), 20);
}

#[test]
fn a_double_without_a_schedule_mounts_a_tape_for_each_file() {
    let (hpss, _store) = Hpss::prepared();
    hpss.set(&Trouble {
        tapes: 3,
        ..Trouble::default()
    });
    let names = fill(&hpss, 6);
    for name in &names {
        let got = std::process::Command::new(hpss.double.program())
            .current_dir(hpss.local.path())
            .arg(format!("get \"{PATH}/{name}\""))
            .output();
        assert!(got.unwrap().status.success());
    }
    assert_eq!(hpss.double.counters().mounts, 6);
}

#[test]
fn a_missing_program_is_named() {
    let mut hpss = Hpss::new();
    hpss.options.program.path = "stook-no-such-hsi".into();
    let error = hpss.hsi().prepare().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot write to `hpss:{PATH}`: the program `stook-no-such-hsi` was not found")
    );
    assert_eq!(error.advice(), Advice::GiveUp);
}

fn require_login(hpss: &Hpss, error: &StoreError) {
    let program = hpss.double.program();
    match &error.cause {
        StoreCause::Login { command } => assert_eq!(command.as_deref(), program.to_str()),
        _ => panic!("{error}"),
    }
    assert_eq!(error.advice(), Advice::Login);
}

#[test]
fn who_is_not_logged_in_learns_how() {
    let (hpss, store) = Hpss::prepared();
    for exits_zero in [false, true] {
        hpss.set(&Trouble {
            login_operations: Some(0),
            exits_zero,
            ..Trouble::default()
        });
        require_login(&hpss, &store.prepare().unwrap_err());
        require_login(&hpss, &store.list().unwrap_err());
        require_login(&hpss, &store.stat("index.db").unwrap_err());
        require_login(&hpss, &store.delete("index.db").unwrap_err());
        require_login(&hpss, &hpss.put("index.db", b"x", Proof::Size).unwrap_err());
        require_login(
            &hpss,
            &hpss.verify("index.db", b"x", Proof::Size).unwrap_err(),
        );
    }
    assert_eq!(hpss.double.counters().bytes_in, 0);
}

#[test]
fn a_network_that_is_gone_is_no_missing_login() {
    let (hpss, _store) = Hpss::prepared();
    // The first session, and the one that removes the remains.
    hpss.set(&Trouble {
        unreachable: Some((1, 2)),
        ..Trouble::default()
    });
    let error = hpss.put("a.tar", b"bytes", Proof::Size).unwrap_err();
    assert!(error.to_string().ends_with("Connection refused"), "{error}");
    assert_eq!(error.advice(), Advice::Retry);
    hpss.put("a.tar", b"bytes", Proof::Size).unwrap();
}

#[test]
fn a_login_that_expires_keeps_what_has_arrived() {
    let (hpss, store) = Hpss::prepared();
    let names = fill(&hpss, 5);
    hpss.set(&Trouble {
        login_bytes: Some(25_000),
        ..Trouble::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let paths = targets(folder.path(), &names);
    let (each, end) = get(&store, &downloads(&names, &paths), &Silent);
    require_login(&hpss, &end.unwrap_err());
    let arrived = |got: &Option<Got>| matches!(got, Some(Ok(())));
    // The third was whole when the login ended.
    assert_eq!(
        each.iter().map(arrived).collect::<Vec<_>>(),
        [true, true, true, false, false]
    );
    assert_eq!(names_in(folder.path()).len(), 3);
    // The same again goes on with the rest.
    hpss.set(&Trouble::default());
    let (each, end) = get(&store, &downloads(&names[3..], &paths[3..]), &Silent);
    end.unwrap();
    assert!(each.iter().all(arrived));
    assert_eq!(hpss.double.counters().bytes_out, 50_000);
}

#[test]
fn a_transfer_that_fails_half_way_leaves_nothing_and_can_be_repeated() {
    let (hpss, store) = Hpss::prepared();
    hpss.put("index.db", b"the first index", Proof::Size)
        .unwrap();
    for exits_zero in [false, true] {
        hpss.set(&Trouble {
            fail_at: Some(1),
            exits_zero,
            ..Trouble::default()
        });
        let error = hpss
            .put("index.db", b"another index", Proof::Size)
            .unwrap_err();
        assert!(
            error
                .to_string()
                .contains("hsi says: put: Error -5 on transfer"),
            "{error}"
        );
        assert_eq!(error.advice(), Advice::Retry);
        assert_eq!(hpss.remote("index.db").unwrap(), b"the first index");
        assert_eq!(hpss.all_names(), ["index.db"]);
    }
    hpss.put("index.db", b"another index", Proof::Size).unwrap();
    assert_eq!(hpss.remote("index.db").unwrap(), b"another index");

    let names = fill(&hpss, 3);
    for exits_zero in [false, true] {
        hpss.set(&Trouble {
            fail_at: Some(2),
            exits_zero,
            ..Trouble::default()
        });
        let folder = tempfile::tempdir().unwrap();
        let paths = targets(folder.path(), &names);
        let (each, end) = get(&store, &downloads(&names, &paths), &Silent);
        end.unwrap();
        let [Some(Ok(())), Some(Err(error)), Some(Ok(()))] = &each[..] else {
            panic!("{each:?}");
        };
        assert!(
            error.to_string().contains("hsi says: get: Error -5"),
            "{error}"
        );
        assert_eq!(names_in(folder.path()).len(), 2);
    }
}

#[test]
fn a_success_that_is_none_is_noticed() {
    let (hpss, store) = Hpss::prepared();
    let truncated = Trouble {
        truncate_at: Some(1),
        ..Trouble::default()
    };
    hpss.set(&truncated);
    let error = hpss.put("000000.tar", &[1; 1000], Proof::Size).unwrap_err();
    let of_size = StoreCause::Different(Difference::Size {
        expected: 1000,
        found: 500,
    });
    assert_eq!(error.cause.to_string(), of_size.to_string());
    assert_eq!(hpss.all_names(), Vec::<String>::new());

    hpss.set(&Trouble {
        lies: true,
        ..Trouble::default()
    });
    let error = hpss.put("000000.tar", &[1; 1000], Proof::Size).unwrap_err();
    let of_hash = StoreCause::Different(Difference::Hash);
    assert_eq!(error.cause.to_string(), of_hash.to_string());

    hpss.set(&Trouble::default());
    hpss.put("000000.tar", &[1; 1000], Proof::Size).unwrap();
    hpss.set(&truncated);
    let path = hpss.local.path().join("got");
    std::fs::write(&path, b"what was there").unwrap();
    let download = Download {
        name: "000000.tar",
        path: &path,
        size: None,
    };
    let (mut each, end) = get(&store, &[download], &Silent);
    end.unwrap();
    let error = each.remove(0).unwrap().unwrap_err();
    assert_eq!(error.cause.to_string(), of_size.to_string());
    assert_eq!(names_in(hpss.local.path()), ["a volume", "got"]);
}

#[test]
fn what_hpss_does_not_replace_steps_aside_and_comes_back() {
    let (hpss, store) = Hpss::prepared();
    for never_replaces in [false, true] {
        hpss.set(&Trouble {
            never_replaces,
            ..Trouble::default()
        });
        hpss.put("index.db", b"the first index", Proof::Size)
            .unwrap();
        hpss.put("index.db", b"another index", Proof::Size).unwrap();
        assert_eq!(hpss.remote("index.db").unwrap(), b"another index");
        assert_eq!(hpss.all_names(), ["index.db"]);
    }
    // A run that was killed between two renames.
    store.delete("index.db").unwrap();
    hpss.overwrite(".index.db.stook-previous", b"the first index");
    assert_eq!(store.list().unwrap(), []);
    store.prepare().unwrap();
    assert_eq!(hpss.remote("index.db").unwrap(), b"the first index");
    assert_eq!(hpss.all_names(), ["index.db"]);
}

#[test]
fn what_was_sent_and_has_no_name_yet_is_not_sent_again() {
    let (mut hpss, _store) = Hpss::prepared();
    hpss.options.program.patience = Duration::from_millis(300);
    hpss.set(&Trouble {
        hang_on: Some("mv".to_owned()),
        ..Trouble::default()
    });
    let error = hpss.put("a.tar", b"bytes", Proof::Size).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Timeout(0)), "{error}");
    hpss.options.program.patience = Duration::from_secs(60);
    hpss.set(&Trouble::default());
    hpss.put("a.tar", b"bytes", Proof::ReadBack).unwrap();
    assert_eq!(hpss.remote("a.tar").unwrap(), b"bytes");
    assert_eq!(
        (hpss.double.counters().bytes_in, hpss.double.count("put ")),
        (5, 1)
    );
}

#[test]
fn a_full_store_says_so_and_keeps_what_it_has() {
    let (hpss, _store) = Hpss::prepared();
    hpss.put("index.db", b"the first index", Proof::Size)
        .unwrap();
    hpss.set(&Trouble {
        capacity: Some(100),
        exits_zero: true,
        ..Trouble::default()
    });
    let error = hpss.put("index.db", &[1; 1000], Proof::Size).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Full), "{error}");
    assert_eq!(hpss.remote("index.db").unwrap(), b"the first index");
    assert_eq!(hpss.all_names(), ["index.db"]);
}

#[test]
fn proofs_are_told_apart() {
    let (hpss, _store) = Hpss::prepared();
    let of = |proof| hpss.put("a.tar", b"bytes", proof).unwrap().proof;
    assert_eq!(of(Proof::Size), Proof::HashedInTransfer);
    assert_eq!(of(Proof::ReadBack), Proof::ReadBack);
    assert_eq!(hpss.double.count("hashverify"), 1);
    let verify = |bytes, proof| {
        hpss.verify("a.tar", bytes, proof)
            .map(|stored| stored.proof)
    };
    assert_eq!(
        verify(b"bytes", Proof::Size).unwrap(),
        Proof::HashedInTransfer
    );
    assert_eq!(verify(b"bytes", Proof::ReadBack).unwrap(), Proof::ReadBack);
    let different = |result: Result<Proof, StoreError>| match result.unwrap_err().cause {
        StoreCause::Different(difference) => difference,
        other => panic!("{other}"),
    };
    assert_eq!(different(verify(b"bytez", Proof::Size)), Difference::Hash);
    // What happens to the bytes on their tape no stored hash tells.
    hpss.double.rot(&format!("{PATH}/a.tar"));
    assert_eq!(
        verify(b"bytes", Proof::Size).unwrap(),
        Proof::HashedInTransfer
    );
    assert_eq!(
        different(verify(b"bytes", Proof::ReadBack)),
        Difference::Hash
    );
}

#[test]
fn a_file_that_another_program_put_has_its_size_or_is_read() {
    let (hpss, _store) = Hpss::prepared();
    hpss.overwrite("a.tar", b"bytes");
    let verify = |bytes, proof| hpss.verify("a.tar", bytes, proof);
    assert_eq!(verify(b"bytes", Proof::Size).unwrap().proof, Proof::Size);
    assert_eq!(
        verify(b"bytes", Proof::ReadBack).unwrap().proof,
        Proof::ReadBack
    );
    hpss.overwrite("a.tar", b"bytez");
    assert_eq!(verify(b"bytes", Proof::Size).unwrap().proof, Proof::Size);
    let error = verify(b"bytes", Proof::ReadBack).unwrap_err();
    assert!(
        matches!(error.cause, StoreCause::Different(Difference::Hash)),
        "{error}"
    );
    let error = hpss.verify("none.tar", b"bytes", Proof::Size).unwrap_err();
    assert!(matches!(error.cause, StoreCause::NotFound), "{error}");
}

#[test]
fn a_program_that_hangs_runs_out_of_patience() {
    let (mut hpss, _store) = Hpss::prepared();
    hpss.options.program.patience = Duration::from_millis(300);
    for hang_on in ["put", "hashlist", "mv"] {
        hpss.set(&Trouble {
            hang_on: Some(hang_on.to_owned()),
            ignores_term: true,
            ..Trouble::default()
        });
        let error = hpss.put("a.tar", b"bytes", Proof::Size).unwrap_err();
        assert!(matches!(error.cause, StoreCause::Timeout(0)), "{error}");
        assert_eq!(error.advice(), Advice::Retry);
    }
    assert_eq!(hpss.remote("a.tar"), None);
    // One that is only slow does not.
    hpss.options.program.patience = Duration::from_secs(2);
    hpss.set(&Trouble {
        bytes_per_second: Some(100_000),
        ..Trouble::default()
    });
    hpss.put("a.tar", &[7; 300_000], Proof::Size).unwrap();
    let path = hpss.local.path().join("got");
    let download = Download {
        name: "a.tar",
        path: &path,
        size: Some(300_000),
    };
    let (each, end) = get(&hpss.hsi(), &[download], &Silent);
    end.unwrap();
    assert!(matches!(each[..], [Some(Ok(()))]), "{each:?}");
}

#[test]
fn an_interruption_ends_a_program_that_hangs() {
    let (mut hpss, store) = Hpss::prepared();
    let names = fill(&hpss, 3);
    let interrupted = |error: StoreError| {
        assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");
    };
    hpss.set(&Trouble {
        hang_at: Some(1),
        ignores_term: true,
        ..Trouble::default()
    });
    let is_half = When(|| hpss.double.counters().bytes_in == 30_002);
    let put = hpss.put_watched("a.tar", b"bytes", Proof::Size, &is_half);
    interrupted(put.unwrap_err());
    assert_eq!(hpss.remote("a.tar"), None);

    hpss.set(&Trouble {
        hang_at: Some(2),
        ignores_term: true,
        ..Trouble::default()
    });
    let folder = tempfile::tempdir().unwrap();
    let paths = targets(folder.path(), &names);
    let is_half = When(|| hpss.double.counters().bytes_out == 15_000);
    let (each, end) = get(&store, &downloads(&names, &paths), &is_half);
    interrupted(end.unwrap_err());
    // What was whole by then is kept, and of the others nothing stays.
    let arrived = each
        .iter()
        .filter(|got| matches!(got, Some(Ok(()))))
        .count();
    assert_eq!((arrived, names_in(folder.path()).len()), (1, 1));

    hpss.set(&Trouble {
        hang_on: Some("ls".to_owned()),
        ignores_term: true,
        ..Trouble::default()
    });
    let is_asked = AtomicBool::new(false);
    hpss.options.program.interruption =
        Interruption::new(move || is_asked.swap(true, Ordering::Relaxed));
    interrupted(hpss.hsi().list().unwrap_err());
}

#[test]
fn names_that_hsi_cannot_be_told_are_refused_before_it_runs() {
    let (hpss, store) = Hpss::prepared();
    let sessions = hpss.double.counters().sessions;
    for name in ["it's", "a\"b", "a\nb", "a*", "$HOME", "a;rm x"] {
        let errors = [
            hpss.put(name, b"bytes", Proof::Size).unwrap_err(),
            store.stat(name).unwrap_err(),
            store.delete(name).unwrap_err(),
        ];
        for error in errors {
            assert!(matches!(error.cause, StoreCause::Character(_)), "{error}");
            assert_eq!(error.advice(), Advice::GiveUp);
        }
    }
    let odd = HsiStore::new("/a;rm -R/", hpss.options.clone());
    let error = odd.list().unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot list `hpss:/a;rm -R`: names there cannot have ';'"
    );
    assert_eq!(hpss.double.counters().sessions, sessions);
}

#[test]
fn class_and_account_are_handed_over() {
    let mut hpss = Hpss::new();
    hpss.options.class_of_service = Some(7);
    hpss.options.program.arguments = ["-a", "m1234"].map(Into::into).to_vec();
    hpss.hsi().prepare().unwrap();
    hpss.put("a.tar", b"bytes", Proof::Size).unwrap();
    assert_eq!(hpss.double.count("put -c on -H md5 cos=7 ./a volume"), 1);
}

#[test]
fn a_path_below_home_is_found() {
    let hpss = Hpss::new();
    let store = HsiStore::new("-run", hpss.options.clone());
    store.prepare().unwrap();
    assert_eq!(store.name(), "hpss:-run");
    assert_eq!(store.list().unwrap(), []);
    hpss.double.overwrite("/home/u/user/-run/index.db", b"x");
    assert_eq!(store.list().unwrap()[0].size, 1);
}
