//! Directories of other machines: the contract against sshd on this one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use stook_store::{
    Advice, Condition, Interruption, Location, Proof, Settings, Silent, SshOptions, SshStore,
    Store, StoreCause, StoreError, Stored, TransferObserver, Upload,
};
use stook_testkit::servers::Sshd;
use tempfile::TempDir;

use crate::contract::{self, Place};

struct Machine {
    sshd: Sshd,
    folder: TempDir,
}

impl Machine {
    fn new() -> Option<Self> {
        let Some(sshd) = Sshd::start().unwrap() else {
            stook_testkit::skip!("sshd is not installed, or needs root to begin");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        Some(Self { sshd, folder })
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a place/it's")
    }

    fn options(&self) -> SshOptions {
        let mut options = SshOptions {
            control: Some(self.folder.path().to_owned()),
            ..SshOptions::default()
        };
        options.program.arguments = self.sshd.arguments();
        options.program.patience = Duration::from_secs(20);
        options
    }

    fn open(&self, options: SshOptions) -> SshStore {
        let path = self.path();
        let path = path.to_str().unwrap();
        SshStore::new(None, "127.0.0.1", Some(self.sshd.port()), path, options).unwrap()
    }
}

impl Place for Machine {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.open(self.options()))
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.path().join(name), bytes).unwrap();
    }
}

#[test]
fn another_machine_keeps_the_contract() {
    if Machine::new().is_some() {
        contract::check(&|| Machine::new().unwrap());
    }
}

fn put(
    store: &dyn Store,
    size: usize,
    condition: &Condition,
    observer: &dyn TransferObserver,
) -> Result<Stored, StoreError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source");
    std::fs::write(&path, vec![5; size]).unwrap();
    let upload = Upload {
        name: "000000.tar",
        path: &path,
        size: size as u64,
        md5: None,
        condition,
        proof: Proof::Size,
    };
    store.put(&upload, observer)
}

#[test]
fn a_connection_of_its_own_for_each_request_will_do() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let store = machine.open(SshOptions {
        control: None,
        ..machine.options()
    });
    store.prepare().unwrap();
    let stored = put(&store, 3 << 20, &Condition::New, &Silent).unwrap();
    assert_eq!(stored.proof, Proof::ReadBack);
    let file = store.stat("000000.tar").unwrap().unwrap();
    assert_eq!(file.version, stored.version);
    let mut buffer = [0; 1000];
    assert_eq!(store.read_range(&file, 1 << 20, &mut buffer).unwrap(), 1000);
    assert_eq!(buffer, [5; 1000]);
}

#[test]
fn nothing_is_left_beside_the_files() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let store = machine.open(machine.options());
    store.prepare().unwrap();
    let first = put(&store, 100, &Condition::New, &Silent).unwrap();
    put(&store, 100, &Condition::New, &Silent).unwrap_err();
    let unchanged = Condition::Unchanged(first.version.unwrap());
    put(&store, 200, &unchanged, &Silent).unwrap();
    put(&store, 300, &unchanged, &Silent).unwrap_err();
    let names = std::fs::read_dir(machine.path()).unwrap();
    let names: Vec<OsString> = names.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["000000.tar"]);
}

#[test]
fn names_with_control_characters_are_refused() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let store = machine.open(machine.options());
    store.prepare().unwrap();
    let error = store.stat("a\nb").unwrap_err();
    assert!(
        matches!(error.cause, StoreCause::Character('\n')),
        "{error}"
    );
    // One that is there does not look like another one.
    std::fs::write(machine.path().join("a\n1 1 1 1 .\\b"), b"x").unwrap();
    assert!(store.list().unwrap().is_empty());
    for (user, host) in [(Some("-oProxyCommand=x"), "h"), (None, "-oProxyCommand=x")] {
        SshStore::new(user, host, None, "/a", SshOptions::default()).unwrap_err();
    }
}

#[test]
fn who_is_not_let_in_sees_why() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let mut options = machine.options();
    options.program.arguments = ["-F", "/dev/null", "-oIdentityFile=/no/key"]
        .map(OsString::from)
        .to_vec();
    let strict = |known: &str| {
        let known = format!("-oUserKnownHostsFile={known}");
        let mut options = options.clone();
        let strict = [
            "-oStrictHostKeyChecking=yes",
            "-oIdentitiesOnly=yes",
            &known,
        ];
        options.program.arguments.extend(strict.map(OsString::from));
        machine.open(options).list().unwrap_err()
    };
    let unknown_host = strict("/dev/null");
    assert_eq!(unknown_host.advice(), Advice::Login, "{unknown_host}");
    let said = unknown_host.to_string();
    assert!(
        said.ends_with("ssh says: Host key verification failed."),
        "{said}"
    );
    let known = machine.sshd.arguments().into_iter().find_map(|argument| {
        let text = argument.into_string().ok()?;
        Some(text.strip_prefix("-oUserKnownHostsFile=")?.to_owned())
    });
    let no_key = strict(&known.unwrap());
    assert_eq!(no_key.advice(), Advice::Login, "{no_key}");
    assert!(
        no_key.to_string().contains("Permission denied ("),
        "{no_key}"
    );
    assert!(matches!(no_key.cause, StoreCause::NotLetIn { .. }));
}

#[test]
fn nobody_listening_is_worth_another_try() {
    let Some(mut machine) = Machine::new() else {
        return;
    };
    let store = machine.open(SshOptions {
        control: None,
        ..machine.options()
    });
    store.prepare().unwrap();
    machine.sshd.kill();
    let error = store.list().unwrap_err();
    assert_eq!(error.advice(), Advice::Retry, "{error}");
    assert!(error.to_string().contains("Connection refused"), "{error}");
}

#[test]
fn a_missing_program_is_named() {
    let location = Location::parse("ssh://host/path").unwrap();
    let mut settings = Settings::default();
    settings.ssh.program.path = "stook-no-such-ssh".into();
    let error = location.open(&settings).unwrap().list().unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot list `ssh://host/path`: the program `stook-no-such-ssh` was not found"
    );
}

/// Asks to end once some bytes were sent.
struct AfterBytes(AtomicU64);

impl TransferObserver for AfterBytes {
    fn transferred(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

#[test]
fn an_interrupted_transfer_leaves_nothing() {
    let Some(machine) = Machine::new() else {
        return;
    };
    let store = machine.open(machine.options());
    store.prepare().unwrap();
    let observer = AfterBytes(AtomicU64::new(0));
    let error = put(&store, 200 << 20, &Condition::Always, &observer).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");
    assert_eq!(std::fs::read_dir(machine.path()).unwrap().count(), 0);
}

#[test]
fn an_interruption_ends_a_program_that_hangs() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("ssh");
    std::fs::write(&program, "#!/bin/sh\nexec sleep 60\n").unwrap();
    let mut permissions = std::fs::metadata(&program).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(&program, permissions).unwrap();
    let begin = Instant::now();
    let mut options = SshOptions::default();
    options.program.path = program;
    options.program.interruption =
        Interruption::new(move || begin.elapsed() > Duration::from_millis(300));
    let store = SshStore::new(None, "host", None, "/a", options).unwrap();
    let error = store.list().unwrap_err();
    assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");
}
