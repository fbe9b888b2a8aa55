//! The program `slowfs`: its command line, and that it leaves no mount behind however it ends.

use crate::slow::{is_mounted, is_possible};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use stook_testkit::{TempDir, Tree, remove_tree};

const PROGRAM: &str = env!("CARGO_BIN_EXE_slowfs");

/// Long enough for a busy machine; only a failure takes it.
const PATIENCE: Duration = Duration::from_secs(60);

struct Running {
    child: Child,
    source: TempDir,
    mountpoint: TempDir,
}

impl Running {
    /// Starts `command` with the two directories and waits until they are mounted.
    fn start(mut command: Command, options: &[&str]) -> Self {
        let (source, mountpoint) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let mut child = command
            .args([source.path(), mountpoint.path()])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "slowfs: mounted\n");
        assert!(is_mounted(mountpoint.path()));
        Self {
            child,
            source,
            mountpoint,
        }
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn wait_for_end(&self) {
        wait_for("the mount to end", || !is_mounted(self.mountpoint.path()));
    }
}

impl Drop for Running {
    /// For a test that failed: the directories can only be removed without the mount.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.send(Signal::TERM);
            let _ = self.child.wait();
        }
        let start = Instant::now();
        while is_mounted(self.mountpoint.path()) && start.elapsed() < PATIENCE {
            sleep(Duration::from_millis(5));
        }
    }
}

fn wait_for(what: &str, mut is_true: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        sleep(Duration::from_millis(5));
    }
}

fn slowfs(options: &[&str]) -> Running {
    Running::start(Command::new(PROGRAM), options)
}

/// Runs it where it is to end at once.
fn ended(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).args(arguments).output().unwrap()
}

#[test]
fn signals_end_the_mount_and_the_counts_are_written() {
    if !is_possible() {
        return;
    }
    let directory = TempDir::new().unwrap();
    let counts = directory.join("counts.json");
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let options = ["--latency", "100us", "--counts", counts.to_str().unwrap()];
        let mut running = slowfs(&options);
        Tree::wide(10).write(running.mountpoint.path()).unwrap();
        running.send(signal);
        assert!(running.child.wait().unwrap().success());
        assert!(!is_mounted(running.mountpoint.path()));
        assert_eq!(
            fs::read_dir(running.source.join("wide")).unwrap().count(),
            10
        );
        let counts: serde_json::Value =
            serde_json::from_slice(&fs::read(&counts).unwrap()).unwrap();
        assert_eq!(counts["ops"]["create"], 10, "{counts}");
        assert_eq!(counts["ops"]["flush"], 10, "{counts}");
        assert_eq!(counts["most_in_flight"], 1, "{counts}");
    }
}

#[test]
fn umount_ends_the_program() {
    if !is_possible() {
        return;
    }
    let mut running = slowfs(&[]);
    let unmounted = Command::new("umount")
        .arg(running.mountpoint.path())
        .status();
    if unmounted.is_ok_and(|status| status.success()) {
        assert!(running.child.wait().unwrap().success());
    } else {
        stook_testkit::skip!("no umount for this user");
        running.send(Signal::TERM);
        running.child.wait().unwrap();
    }
}

#[test]
fn a_killed_program_leaves_no_mount() {
    if !is_possible() {
        return;
    }
    let mut running = slowfs(&["--latency", "1ms"]);
    fs::write(running.mountpoint.join("file"), b"x").unwrap();
    let used = fs::File::open(running.mountpoint.join("file")).unwrap();
    running.send(Signal::KILL);
    running.child.wait().unwrap();
    running.wait_for_end();
    drop(used);
}

#[test]
fn it_ends_with_the_program_that_started_it() {
    if !is_possible() {
        return;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" & wait", "sh", PROGRAM]);
    let mut running = Running::start(shell, &[]);
    running.send(Signal::KILL);
    running.child.wait().unwrap();
    running.wait_for_end();
}

#[test]
fn its_umask_does_not_matter() {
    if !is_possible() {
        return;
    }
    let mut shell = Command::new("sh");
    shell.args(["-c", "umask 077 && exec \"$@\"", "sh", PROGRAM]);
    let mut running = Running::start(shell, &[]);
    let elsewhere = TempDir::new().unwrap();
    for root in [elsewhere.path(), running.mountpoint.path()] {
        fs::create_dir(root.join("dir")).unwrap();
        fs::write(root.join("file"), b"").unwrap();
    }
    for name in ["dir", "file"] {
        let mode = |root: &Path| fs::metadata(root.join(name)).unwrap().mode();
        assert_eq!(
            mode(running.source.path()),
            mode(elsewhere.path()),
            "{name}"
        );
    }
    running.send(Signal::TERM);
    running.child.wait().unwrap();
}

#[test]
fn what_the_kernel_forgets_is_closed() {
    if !is_possible() {
        return;
    }
    let mut running = slowfs(&[]);
    let descriptors = format!("/proc/{}/fd", running.child.id());
    let open = || fs::read_dir(&descriptors).unwrap().count();
    // After the first answer, every descriptor that the program itself needs is open.
    assert!(!running.mountpoint.join("missing").exists());
    let before = open();
    let root = running.mountpoint.join("tree");
    Tree::random(3, 400).write(&root).unwrap();
    assert!(open() > before + 20, "directories are held");
    remove_tree(&root).unwrap();
    wait_for("everything to be forgotten", || open() == before);
    running.send(Signal::TERM);
    running.child.wait().unwrap();
}

#[test]
fn wrong_usage_is_told_in_a_line() {
    let cases: [(&[&str], &str); 7] = [
        (&[], "a source and a mount point are needed"),
        (&["a", "b", "c"], "a source and a mount point are needed"),
        (&["a", "b", "--latency", "1"], "`1` is no duration"),
        (
            &["a", "b", "--op", "walk=1ms"],
            "`walk` is no kind of request",
        ),
        (&["a", "b", "--queue", "0"], "`0` is no count"),
        (&["a", "b", "--ttl"], "--ttl needs a value"),
        (&["a", "b", "--fast"], "there is no option `--fast`"),
    ];
    for (arguments, expected) in cases {
        let output = ended(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        let (first, rest) = text.split_once('\n').unwrap();
        assert!(first.starts_with(&format!("error: {expected}")), "{text}");
        assert!(
            rest.starts_with("usage: slowfs SOURCE MOUNTPOINT"),
            "{text}"
        );
    }
}

#[test]
fn help_lists_every_option_and_kind() {
    let output = ended(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    for word in [
        "--latency",
        "--op",
        "--queue",
        "--ttl",
        "--counts",
        "copy_file_range",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn what_cannot_be_mounted_is_a_failure() {
    let output = ended(&["/nonexistent/source", "/nonexistent/mountpoint"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.starts_with("error: cannot find the directory `/nonexistent/source`"),
        "{text}"
    );
}
