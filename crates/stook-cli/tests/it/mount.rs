//! `stook mount` as a user meets it: a daemon, its signals and its socket; stale mounts; the helper of `mount(8)`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use stook_testkit::servers::Nginx;
use stook_testkit::{skip, tree};

use crate::place::{Place, Ran, wait_until};

/// Unmounts whatever a test leaves behind.
pub(crate) struct Point<'p>(pub(crate) &'p Place);

impl Drop for Point<'_> {
    fn drop(&mut self) {
        // Mostly nothing is mounted there any more.
        let _ = Command::new("umount")
            .args(["-l", "-q"])
            .arg(self.0.path("point"))
            .stderr(Stdio::null())
            .status();
    }
}

fn place() -> Place {
    let place = Place::with(&tree! {
        "a" => file(b"content"), "d/b" => file([7; 100_000]), "d/link" => symlink("b"),
    });
    place.stdout(&["create", "src", "archive"]);
    fs::create_dir(place.path("point")).unwrap();
    place
}

pub(crate) fn has_fuse() -> bool {
    let is_there = Path::new("/dev/fuse").exists() && stook_sys::is_root();
    if !is_there {
        skip!("there is no FUSE that root could use");
    }
    is_there
}

pub(crate) fn is_mounted(place: &Place) -> bool {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let point = place.path("point");
    mounts
        .lines()
        .any(|line| line.split(' ').nth(1) == point.to_str())
}

fn foreground(place: &Place, arguments: &[&str]) -> Child {
    let words = [&["mount", "--foreground"], arguments, &["archive", "point"]].concat();
    let mut child = place
        .command(&words)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert!(wait_until(&mut child, || is_mounted(place)));
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([name, &child.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[test]
fn the_command_ends_once_it_is_mounted_and_the_daemon_with_the_mount() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let point = Point(&place);
    let ran = place.run(&["mount", "archive", "point"]);
    assert_eq!((ran.status, ran.text()), (Some(0), ""), "{}", ran.stderr);
    // No waiting: it is there.
    assert_eq!(fs::read(place.path("point/a")).unwrap(), b"content");
    place.assert_same_tree("src", "point");
    let stats: serde_json::Value =
        serde_json::from_str(&place.stdout(&["talk", "point", "stats"])).unwrap();
    assert!(stats["read_bytes"].as_u64().unwrap() >= 100_007, "{stats}");
    assert_eq!(stats["open_requests"], 0);
    let timers = place.stdout(&["talk", "point", "timers"]);
    assert!(timers.contains("mount.read"), "{timers}");
    let metrics = place.stdout(&["talk", "point", "stats", "--prometheus"]);
    assert!(
        metrics.contains("stook_mount_request_seconds_count{operation=\"read\"}"),
        "{metrics}"
    );
    let process = stats["process"].as_u64().unwrap();
    place.stdout(&["talk", "point", "quit"]);
    assert!(!is_mounted(&place));
    let server = format!("/proc/{process}");
    let begin = std::time::Instant::now();
    while Path::new(&server).exists() {
        assert!(begin.elapsed().as_secs() < 60, "the server goes on");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let ran = place.run(&["talk", "point", "stats"]);
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr.starts_with("error: cannot talk to `point`"),
        "{}",
        ran.stderr
    );
    drop(point);
}

#[test]
fn what_keeps_it_from_being_mounted_is_said_by_the_command() {
    if !has_fuse() {
        return;
    }
    let place = place();
    for (arguments, text) in [
        (&["mount", "missing", "point"][..], "missing"),
        (&["mount", "archive", "missing"], "`missing`"),
        (&["mount", "archive", "archive"], "the archive lies in it"),
        (
            &["mount", "-o", "suid", "archive", "point"],
            "set-id bits are never heeded in a mount",
        ),
        (&["mount", "--as-of", "99", "archive", "point"], "99"),
    ] {
        let ran = place.run(arguments);
        assert_ne!(ran.status, Some(0), "{arguments:?}");
        assert!(ran.stderr.contains(text), "{arguments:?}: {}", ran.stderr);
        assert!(!is_mounted(&place));
    }
}

#[test]
fn all_versions_need_the_name_that_they_are_shown_under() {
    if !has_fuse() {
        return;
    }
    let place = Place::with(&tree! { ".stook/own" => file(b"content") });
    place.stderr(&["create", "src", "archive"]);
    std::fs::create_dir(place.path("point")).unwrap();
    let ran = place.run(&["mount", "--all-versions", "archive", "point"]);
    assert_eq!(
        (ran.status, &*ran.stderr),
        (
            Some(1),
            "error: cannot show all versions: the archive has a `.stook` of its own\n\
             hint: mount it without --all-versions; `stook list --all` lists them\n"
        )
    );
}

#[test]
fn a_signal_unmounts_says_who_is_in_the_way_and_the_next_detaches() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _point = Point(&place);
    let mut idle = foreground(&place, &[]);
    signal(&idle, "-TERM");
    assert_eq!(idle.wait().unwrap().code(), Some(0));
    assert!(!is_mounted(&place));

    let mut busy = foreground(&place, &["--log", "log"]);
    let mut holder = Command::new("sleep")
        .arg("600")
        .current_dir(place.path("point/d"))
        .spawn()
        .unwrap();
    signal(&busy, "-TERM");
    let log = || fs::read_to_string(place.path("log")).unwrap_or_default();
    assert!(wait_until(&mut busy, || log().contains("in use")));
    let named = format!("sleep ({}: cwd)", holder.id());
    assert!(log().contains(&named), "{}", log());
    assert!(is_mounted(&place));
    signal(&busy, "-INT");
    assert!(wait_until(&mut busy, || !is_mounted(&place)));
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(busy.wait().unwrap().code(), Some(0));
}

#[test]
fn a_killed_server_fails_its_readers_and_the_mount_is_named_as_stale() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _point = Point(&place);
    let mut server = foreground(&place, &[]);
    // Readers that never stop by themselves.
    let script = "while cat point/d/b >/dev/null && ls -l point/d >/dev/null; do echo; done";
    let mut readers: Vec<Child> = (0..4)
        .map(|_| {
            Command::new("sh")
                .args(["-c", script])
                .current_dir(place.root())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .collect();
    for reader in &mut readers {
        std::io::Read::read_exact(reader.stdout.as_mut().unwrap(), &mut [0]).unwrap();
        // Nobody reads it any more; it must not block the reader.
        reader.stdout = None;
    }
    server.kill().unwrap();
    server.wait().unwrap();
    for reader in &mut readers {
        reader.wait().unwrap();
    }
    let ran = place.run(&["mount", "archive", "point"]);
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr
            .contains("its server has ended, and it is still mounted"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("`fusermount3 -u "), "{}", ran.stderr);
    let freed = Command::new("fusermount3")
        .args(["-u", "point"])
        .current_dir(place.root())
        .status();
    assert!(freed.unwrap().success());
    let ran = place.run(&["mount", "archive", "point"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert_eq!(fs::read(place.path("point/a")).unwrap(), b"content");
    place.stdout(&["talk", "point", "quit"]);
}

#[test]
fn states_and_options_of_fstab() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let _point = Point(&place);
    place.write("src/a", b"newer content");
    place.stdout(&["update", "src", "archive"]);
    let helper = place.path("mount.stook");
    symlink(env!("CARGO_BIN_EXE_stook"), &helper).unwrap();
    let mount = |options: &str| {
        let ran = Command::new(&helper)
            .args([place.path("archive"), place.path("point")])
            .args(["-n", "-o", options])
            .output()
            .unwrap();
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let content = fs::read(place.path("point/a")).unwrap();
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let point = place.path("point");
        let is_ours = |line: &&str| line.split(' ').nth(1) == point.to_str();
        let line = mounts.lines().find(is_ours);
        let line = line.unwrap_or_default().to_owned();
        place.stdout(&["talk", "point", "quit"]);
        (content, line)
    };
    let (content, line) = mount("ro,allow_other,_netdev,noexec");
    assert_eq!(content, b"newer content");
    for option in [
        "ro,nosuid,nodev,noexec",
        "default_permissions",
        "allow_other",
    ] {
        assert!(line.contains(option), "{line}");
    }
    let (content, _) = mount("as_of=1");
    assert_eq!(content, b"content");
}

/// `/dev/fuse` is open to all where udev makes it; elsewhere a namespace of its own has such a one.
#[test]
fn an_ordinary_user_can_mount() {
    if !has_fuse() {
        return;
    }
    let place = place();
    place.set_mode(".", 0o755);
    let point = place.path("point");
    std::os::unix::fs::chown(&point, Some(65_534), Some(65_534)).unwrap();
    let script = "set -e
        mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse
        as_user() { setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"; }
        as_user \"$STOOK\" mount archive point
        as_user cat point/a
        as_user \"$STOOK\" talk point stats | grep -c '\"process\"'
        grep -o 'user_id=65534' /proc/mounts
        as_user fusermount3 -u point";
    let ran = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .current_dir(place.root())
        .env("STOOK", env!("CARGO_BIN_EXE_stook"))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    if stderr.contains("Operation not permitted") {
        return skip!("no namespace of mounts here: {stderr}");
    }
    let stdout = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(stdout, "content1\nuser_id=65534\n", "{stderr}");
}

/// A program that lives in the mount, with all its modules.
#[test]
fn a_virtual_environment_of_python_runs_from_the_mount() {
    if !has_fuse() {
        return;
    }
    let place = Place::new();
    fs::create_dir(place.path("src")).unwrap();
    fs::create_dir(place.path("point")).unwrap();
    let made = Command::new("python3")
        .args(["-m", "venv", "--copies", "--without-pip", "src/venv"])
        .current_dir(place.root())
        .status();
    if !made.is_ok_and(|status| status.success()) {
        return skip!("python3 makes no virtual environments here");
    }
    let package = place.path("src/venv/lib/own");
    fs::create_dir_all(&package).unwrap();
    for number in 0..50 {
        fs::write(
            package.join(format!("m{number}.py")),
            format!("VALUE = {number}\n"),
        )
        .unwrap();
    }
    place.stdout(&["create", "src", "archive"]);
    let _point = Point(&place);
    place.stdout(&["mount", "archive", "point"]);
    let script = "import sys, json, email, importlib
sys.path.insert(0, 'point/venv/lib/own'); sys.dont_write_bytecode = True
print(sum(importlib.import_module(f'm{n}').VALUE for n in range(50)), sys.prefix.endswith('point/venv'))";
    let ran = Command::new(place.path("point/venv/bin/python3"))
        .args(["-c", script])
        .current_dir(place.root())
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(
        String::from_utf8_lossy(&ran.stdout),
        "1225 True\n",
        "{stderr}"
    );
    place.stdout(&["talk", "point", "quit"]);
}

/// Sources, a build script and data are read from the mount; what is built lies elsewhere.
#[test]
fn a_rust_crate_is_built_from_its_sources_in_the_mount() {
    if !has_fuse() {
        return;
    }
    let place = Place::new();
    let source = place.path("src/crate");
    fs::create_dir_all(source.join("src")).unwrap();
    fs::create_dir(place.path("point")).unwrap();
    let mut main = String::new();
    for number in 0..30 {
        let module =
            format!("pub fn value() -> usize {{ include_bytes!(\"../d{number}\").len() }}\n");
        fs::write(source.join(format!("src/m{number}.rs")), module).unwrap();
        fs::write(source.join(format!("d{number}")), vec![7; number * 1000]).unwrap();
        main += &format!("mod m{number};\n");
    }
    let sum: String = (0..30).map(|n| format!(" + m{n}::value()")).collect();
    main += &format!("fn main() {{ println!(\"{{}} {{}}\", env!(\"BUILT\"), 0{sum}); }}\n");
    fs::write(source.join("src/main.rs"), main).unwrap();
    let script = "fn main() { println!(\"cargo::rustc-env=BUILT={}\", include_str!(\"word\")); }\n";
    fs::write(source.join("build.rs"), script).unwrap();
    fs::write(source.join("word"), "mounted").unwrap();
    let manifest =
        "[package]\nname = \"inside\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[workspace]\n";
    fs::write(source.join("Cargo.toml"), manifest).unwrap();
    let cargo = |folder: &str, words: &[&str]| {
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(words)
            .args(["--offline", "--quiet"])
            .current_dir(place.path(folder))
            .env("CARGO_TARGET_DIR", place.path("target"))
            .output()
    };
    let locked = cargo("src/crate", &["generate-lockfile"]);
    if !locked.is_ok_and(|output| output.status.success()) {
        return skip!("cargo is not here");
    }
    place.stdout(&["create", "--zstd", "src", "archive"]);
    let _point = Point(&place);
    place.stdout(&["mount", "archive", "point"]);
    let ran = cargo("point/crate", &["run", "--locked"]).unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    let stdout = String::from_utf8_lossy(&ran.stdout);
    assert_eq!(stdout, "mounted 435000\n", "{stderr}");
    place.stdout(&["talk", "point", "quit"]);
}

/// What was read once comes from the disk, also when the server is gone.
#[test]
fn an_archive_on_a_web_server_is_mounted_and_read_through_the_cache() {
    if !has_fuse() {
        return;
    }
    let place = place();
    let Some(nginx) = Nginx::start("").unwrap() else {
        skip!("nginx is not installed");
        return;
    };
    for name in place.names("archive") {
        fs::copy(place.path("archive").join(&name), nginx.root().join(&name)).unwrap();
    }
    let _point = Point(&place);
    let url = nginx.url();
    let mount = |arguments: &[&str]| {
        let words = [&["mount", &url, "point", "--cache", "blocks"], arguments].concat();
        let mut command = place.command(&words);
        command.env("XDG_CACHE_HOME", place.path("cache"));
        let ran = Ran::of(command.output().unwrap());
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    };
    let stats = || {
        let text = place.stdout(&["talk", "point", "stats"]);
        let stats: serde_json::Value = serde_json::from_str(&text).unwrap();
        move |name: &str| stats["cache"][name].as_u64().unwrap()
    };
    mount(&[]);
    place.assert_same_tree("src", "point");
    assert!(stats()("store_bytes") > 100_000);
    let metrics = place.stdout(&["talk", "point", "stats", "--prometheus"]);
    assert!(
        metrics.contains("stook_mount_cache_store_bytes "),
        "{metrics}"
    );
    place.stdout(&["talk", "point", "quit"]);

    drop(nginx);
    mount(&["--offline"]);
    place.assert_same_tree("src", "point");
    let counts = stats();
    assert_eq!(counts("store_bytes"), 0);
    assert!(counts("disk_bytes") > 100_000);
    place.stdout(&["talk", "point", "evict"]);
    place.stdout(&["talk", "point", "quit"]);

    // Without server and blocks nothing can be read, and nothing else happens.
    mount(&["-o", "offline"]);
    assert!(fs::read(place.path("point/d/b")).is_err());
    assert_eq!(fs::read_dir(place.path("point")).unwrap().count(), 2);
    place.stdout(&["talk", "point", "quit"]);
}
