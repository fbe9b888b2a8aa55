//! Processes that are killed while they put files: the same again goes on, and ends as if nothing had been.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use md5::{Digest, Md5};
use stook_store::{
    Condition, EndpointId, GlobusOptions, GlobusStore, HsiOptions, HsiStore, ProgramOptions, Proof,
    Silent, Store, Upload,
};
use stook_testkit::Random;
use stook_testkit::doubles::{Double, Trouble};

const FILES: u64 = 4;
const KILLS: u64 = 12;
const LOCAL: &str = "11111111-1111-1111-1111-111111111111";
const REMOTE: &str = "22222222-2222-2222-2222-222222222222";
/// Tells the child which program it uses, and where its files lie.
const PROGRAM: &str = "STOOK_TEST_PROGRAM";
const FOLDER: &str = "STOOK_TEST_FOLDER";

fn open(program: &Path, folder: &Path) -> Box<dyn Store> {
    if program.ends_with("hsi") {
        let options = HsiOptions {
            program: ProgramOptions::new(program),
            ..HsiOptions::default()
        };
        return Box::new(HsiStore::new("/run", options));
    }
    let id = |text: &str| EndpointId::parse(text).unwrap();
    let mut options = GlobusOptions::new(id(LOCAL), folder);
    options.program.path = program.into();
    options.poll_every = Duration::from_millis(10);
    Box::new(GlobusStore::new(id(REMOTE), "/run", options))
}

fn bytes(number: u64) -> Vec<u8> {
    Random::new(number).bytes(100_000 + usize::try_from(number).unwrap())
}

fn name(number: u64) -> String {
    format!("{number:06x}.tar")
}

/// Puts what the store lacks.
fn put_all(store: &dyn Store, folder: &Path) {
    store.prepare().unwrap();
    for number in 0..FILES {
        let (name, path, bytes) = (name(number), folder.join(name(number)), bytes(number));
        let upload = Upload {
            name: &name,
            path: &path,
            size: bytes.len() as u64,
            md5: Some(Md5::digest(&bytes).into()),
            condition: &Condition::Always,
            proof: Proof::Size,
        };
        if store.verify(&upload, &Silent).is_err() {
            store.put(&upload, &Silent).unwrap();
        }
    }
}

#[test]
#[ignore = "run by the tests below, as a process to be killed"]
fn child_that_puts() {
    let path = |variable| PathBuf::from(std::env::var_os(variable).unwrap());
    let folder = path(FOLDER);
    put_all(&*open(&path(PROGRAM), &folder), &folder);
}

/// Kills a child again and again; returns how many bytes were sent in the end.
fn kill_often(double: &Double) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..FILES {
        std::fs::write(folder.path().join(name(number)), bytes(number)).unwrap();
    }
    double.set(&Trouble {
        bytes_per_second: Some(1_000_000),
        ..Trouble::default()
    });
    let mut random = Random::new(1);
    for _ in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kill::child_that_puts", "--ignored"])
            .env(PROGRAM, double.program())
            .env(FOLDER, folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(20 + random.below(400)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let store = open(&double.program(), folder.path());
    put_all(&*store, folder.path());
    let sizes = store
        .list()
        .unwrap()
        .into_iter()
        .map(|file| (file.name, file.size));
    let expected = (0..FILES).map(|number| (name(number), 100_000 + number));
    assert!(sizes.eq(expected));
    double.counters().bytes_in
}

#[test]
fn puts_by_hsi_go_on_after_kills() {
    let double = Double::hsi();
    let sent = kill_often(&double);
    for number in 0..FILES {
        let path = format!("/run/{}", name(number));
        assert!(double.content(&path).unwrap() == bytes(number));
    }
    // What was cut off is sent again, no more than once for each kill.
    assert!(sent <= (FILES + KILLS) * 100_003, "{sent} bytes");
}

#[test]
fn puts_by_globus_go_on_after_kills_and_send_nothing_twice() {
    let double = Double::globus();
    double.add_endpoint(LOCAL, Some(Path::new("/")));
    double.add_endpoint(REMOTE, None);
    let sent = kill_often(&double);
    for number in 0..FILES {
        let path = double.endpoint_path(REMOTE, &format!("/run/{}", name(number)));
        assert!(std::fs::read(path).unwrap() == bytes(number));
    }
    // The probes of each run, a few bytes, come on top.
    assert!(sent < FILES * 100_003 + 1000, "{sent} bytes");
}
