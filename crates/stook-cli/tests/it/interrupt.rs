//! SIGINT and SIGTERM: the run ends with status 130, and the same command goes on from there.

use std::process::Child;
use std::time::{Duration, Instant};

use stook_testkit::slowfs::{Options, SlowFs, unavailable};
use stook_testkit::{Random, file, tree};

use crate::crash::{assert_equal_archives, slow_tree, undisturbed};
use crate::place::{Place, Ran, Signal, wait_until};

/// Starts a command, sends the signal as soon as `name` is in the archive, and returns how it ended.
fn interrupted(place: &Place, arguments: &[&str], name: &str, signal_name: &str) -> Ran {
    let mut child = place.command(arguments).spawn().unwrap();
    let signal = Signal::ready(&child, signal_name);
    let file = place.path("arc").join(name);
    assert!(
        wait_until(&mut child, || file.exists()),
        "it ended too soon"
    );
    signal.send();
    Ran::of(child.wait_with_output().unwrap())
}

#[test]
fn an_interrupted_create_goes_on_from_there() {
    let create = ["create", "src", "arc", "--volume-size", "20KiB"];
    let place = Place::with(&slow_tree());
    let undisturbed = undisturbed(&place, &[&create]);
    for signal_name in ["INT", "TERM"] {
        let ran = interrupted(&place, &create, "000003.tar", signal_name);
        assert_eq!((ran.status, ran.text()), (Some(130), ""), "{}", ran.stderr);
        assert_eq!(
            ran.stderr,
            "error: interrupted\nhint: the same command may be given again; what is done already is not done twice\n"
        );
        assert!(!place.path("arc/stook.lock").exists());
        // What is there already can be used.
        place.stderr(&["check", "arc"]);
        let held = place.rows(&["list", "arc", "--json"]).len() as u64;
        assert!(held > 0);
        let done = place.json(&[&create[..], &["--json"]].concat());
        let summary = done.last().unwrap();
        assert!(
            summary["members"].as_u64().unwrap() <= slow_tree().len() as u64 - held,
            "{summary}"
        );
        assert_equal_archives(&undisturbed, &place.path("arc"));
        std::fs::remove_dir_all(place.path("arc")).unwrap();
    }
}

#[test]
fn an_interrupted_update_goes_on_when_create_or_update_is_called() {
    let place = Place::with(&tree! { "first" => file(b"first") });
    place.stderr(&["create", "src", "arc", "--volume-size", "20KiB"]);
    slow_tree().write(&place.path("src/more")).unwrap();
    place.copy("arc", "kept");
    let update = ["update", "src", "arc"];
    place.stderr(&update);
    std::fs::rename(place.path("arc"), place.path("undisturbed")).unwrap();
    for command in ["update", "create"] {
        place.copy("kept", "arc");
        let ran = interrupted(&place, &update, "000003.tar", "INT");
        assert_eq!(ran.status, Some(130), "{}", ran.stderr);
        place.stderr(&[command, "src", "arc"]);
        assert_equal_archives(&place.path("undisturbed"), &place.path("arc"));
        std::fs::remove_dir_all(place.path("arc")).unwrap();
    }
}

/// A file of terabytes must not have to end first.
#[test]
fn a_large_file_can_be_interrupted() {
    let place = Place::with(&tree! {
        "a" => file(b"small"),
        "large" => file(Random::new(3).bytes(8 << 20).repeat(12)),
        "z" => file(b"small"),
    });
    let create = ["create", "src", "arc", "--jobs", "1"];
    let undisturbed = undisturbed(&place, &[&create]);
    let mut child = place.command(&create).spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    let partial = place.path("arc/000000.tar.partial");
    let begun = || std::fs::metadata(&partial).is_ok_and(|found| found.len() > 4 << 20);
    assert!(wait_until(&mut child, begun), "it ended too soon");
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, Some(130), "{}", ran.stderr);
    // The small file before it was kept, and nothing of the large one.
    assert_eq!(
        place.names("arc"),
        ["000000.rows.partial", "000000.tar.partial", "index.db"]
    );
    assert!(std::fs::metadata(&partial).unwrap().len() < 1 << 20);
    let done = place.json(&[&create[..], &["--json"]].concat());
    assert_eq!(done[0]["members"], 2);
    assert_equal_archives(&undisturbed, &place.path("arc"));
}

#[test]
fn an_interrupted_extraction_goes_on_from_there() {
    let place = Place::with(&slow_tree());
    place.stderr(&["create", "src", "arc"]);
    let extract = ["extract", "arc", "--into", "out", "--jobs", "1"];
    let mut child = place.command(&extract).spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    let any = || !place.names("out").is_empty();
    assert!(wait_until(&mut child, any), "it ended too soon");
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    // It may have been done already: what counts is that the next run completes it.
    assert!(matches!(ran.status, Some(0 | 130)), "{}", ran.stderr);
    place.stderr(&extract);
    place.assert_same_tree("src", "out");
}

/// Sends a signal, and returns how the command ended. One that goes on is killed: it would do so for ever.
fn ended_by(mut child: Child, signal_name: &str, what: &str) -> Ran {
    Signal::ready(&child, signal_name).send();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{what} goes on after SIG{signal_name}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    println!("{what}: {} ms", started.elapsed().as_millis());
    Ran::of(child.wait_with_output().unwrap())
}

/// What it takes at most on a busy machine; what ignores the signal takes hours.
const PATIENCE: Duration = Duration::from_secs(20);

/// Long enough to be in the middle of it.
fn a_while() {
    std::thread::sleep(Duration::from_millis(1500));
}

#[test]
fn the_holes_of_a_file_can_be_interrupted() {
    let place = Place::with(&tree! { "small" => file(b"small") });
    let sparse = std::fs::File::create(place.path("src/sparse")).unwrap();
    if let Err(error) = sparse.set_len(8 << 40) {
        stook_testkit::skip!("no file of 8 TiB here: {error}");
        return;
    }
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", (8 << 40) - 3).unwrap();
    for signal_name in ["INT", "TERM"] {
        let child = place.command(&["create", "src", "arc"]).spawn().unwrap();
        a_while();
        let ran = ended_by(child, signal_name, "create");
        assert_eq!(ran.status, Some(130), "{}", ran.stderr);
        assert_eq!(ran.stderr.lines().next(), Some("error: interrupted"));
    }
    place.stderr(&["create", "src", "all", "--exclude", "sparse"]);
    for command in [
        &["update", "src", "all"][..],
        &["diff", "src", "all", "--checksum"],
    ] {
        let child = place.command(command).spawn().unwrap();
        a_while();
        let ran = ended_by(child, "INT", command[0]);
        // A difference needs no content, so it may be there first.
        let is_done = ran.status == Some(0) && command[0] == "diff";
        assert!(is_done || ran.status == Some(130), "{}", ran.stderr);
    }
}

/// A volume of 10 KiB whose one member is said to have 2^63 - 1 bytes, all of them a hole.
fn write_endless(path: &std::path::Path) {
    let python = "import sys, tarfile
member = tarfile.TarInfo('GNUSparseFile.0/endless')
member.size = 512
member.pax_headers = {'GNU.sparse.major': '1', 'GNU.sparse.minor': '0', 'GNU.sparse.name': 'endless',
    'GNU.sparse.realsize': str(2 ** 63 - 1)}
import io
with tarfile.open(sys.argv[1], 'w', format=tarfile.PAX_FORMAT) as tar:
    tar.addfile(member, io.BytesIO(b'1\\n9223372036854775807\\n0\\n'.ljust(512, b'\\0')))
    tar.addfile(tarfile.TarInfo('other'))
";
    let written = std::process::Command::new("python3")
        .args(["-c", python])
        .arg(path)
        .status()
        .unwrap();
    assert!(written.success());
}

#[test]
fn a_volume_that_claims_endless_holes_holds_nobody_up() {
    let place = Place::new();
    std::fs::create_dir(place.path("arc")).unwrap();
    write_endless(&place.path("arc/000000.tar"));
    let unlimited = ["reindex", "arc", "--max-hole", "9223372036854775807"];
    let child = place.command(&unlimited).spawn().unwrap();
    a_while();
    let ran = ended_by(child, "INT", "reindex");
    assert_eq!(ran.status, Some(130), "{}", ran.stderr);
    assert_eq!(place.names("arc"), ["000000.tar"]);
    let ran = place.run(&["reindex", "arc"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    let told = "error: cannot index `endless`: its sparse map claims 9223372036854775807 bytes of holes, \
        more than the limit of 1099511627776\n\
        hint: `--max-hole SIZE` raises the limit\n\
        indexed 1 member, 0 B, in 1 volume; 1 failed\n";
    assert!(ran.stderr.ends_with(told), "{}", ran.stderr);
    // What an index may say of it.
    place.sql(
        "arc/index.db",
        "insert into files values (9, 'endless', 9223372036854775807, '1970-01-01 00:00:00', \
         'd41d8cd98f00b204e9800998ecf8427e', '000000.tar', 0)",
    );
    let ran = place.run(&["check", "arc"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert!(
        ran.stderr
            .starts_with("error: cannot verify `endless`: its sparse map claims"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr.ends_with(": no damage; 1 not verified\n"),
        "{}",
        ran.stderr
    );
    let json = place.run(&["check", "arc", "--json"]);
    assert!(json.text().contains("\"failed\":1}"), "{}", json.text());
    for command in [
        &["check", "arc", "--max-hole", "9223372036854775807"][..],
        &["cat", "arc", "endless"],
    ] {
        let mut child = place.command(command);
        let child = child.stdout(std::process::Stdio::null()).spawn().unwrap();
        a_while();
        let ran = ended_by(child, "TERM", command[0]);
        // What only prints has nothing to clean up: the signal itself ends it.
        let expected = if command[0] == "cat" { None } else { Some(130) };
        assert_eq!(ran.status, expected, "{}", ran.stderr);
    }
}

/// It waits for its reader, so it is in the middle of it.
#[test]
fn an_interrupted_list_of_json_ends_with_an_error() {
    let mut tree = stook_testkit::Tree::new();
    for number in 0..5000 {
        tree.insert(format!("f{number:04}"), file(b""));
    }
    let place = Place::with(&tree);
    place.stderr(&["create", "src", "arc"]);
    for signal_name in ["INT", "TERM"] {
        let mut child = place.command(&["list", "arc", "--json"]).spawn().unwrap();
        let mut first = [0; 4096];
        let stdout = child.stdout.as_mut().unwrap();
        std::io::Read::read_exact(stdout, &mut first).unwrap();
        Signal::ready(&child, signal_name).send();
        let ran = Ran::of(child.wait_with_output().unwrap());
        assert_eq!(
            (ran.status, &*ran.stderr),
            (Some(130), "error: interrupted\n")
        );
        let last = ran.text().lines().last().unwrap();
        let last: serde_json::Value = serde_json::from_str(last).unwrap();
        assert_eq!(
            (&last["type"], &last["status"]),
            (&"error".into(), &130.into())
        );
    }
}

#[test]
fn an_interrupted_list_of_json_does_not_wait_for_its_reader() {
    let mut tree = stook_testkit::Tree::new();
    for number in 0..5000 {
        tree.insert(format!("f{number:04}"), file(b""));
    }
    let place = Place::with(&tree);
    place.stderr(&["create", "src", "arc"]);
    for signal_name in ["INT", "TERM"] {
        let mut child = place.command(&["list", "arc", "--json"]).spawn().unwrap();
        // What reads one byte, and then no more, but does not go away.
        let mut reader = child.stdout.take().unwrap();
        std::io::Read::read_exact(&mut reader, &mut [0]).unwrap();
        let ran = ended_by(child, signal_name, "list");
        assert_eq!(ran.status, Some(130), "{}", ran.stderr);
        drop(reader);
    }
}

/// Where every call takes long, a directory must not be finished first.
#[test]
fn commands_on_slow_storage_can_be_interrupted() {
    if let Some(why) = unavailable() {
        stook_testkit::skip!("{why}");
        return;
    }
    let mut tree = stook_testkit::Tree::new();
    for number in 0..600 {
        tree.insert(format!("d/f{number:04}"), file(b"content"));
    }
    let place = Place::with(&tree);
    place.stderr(&["create", "src", "arc"]);
    std::fs::create_dir(place.path("slow")).unwrap();
    let options = Options::new(Duration::from_millis(200));
    let slow = SlowFs::mount(&place.path("src"), &place.path("slow"), &options).unwrap();
    for command in [
        &["walk", "slow", "--summary"][..],
        &["walk", "slow"],
        &["create", "slow", "new"],
        &["update", "slow", "arc", "--checksum"],
        &["diff", "slow", "arc", "--checksum"],
        &["copy", "slow", "copied"],
        &["copy", "src", "slow/copied"],
        &["extract", "arc", "--into", "slow/out"],
        &["remove", "slow/d", "--archived-in", "arc"],
        &["remove", "slow/d"],
    ] {
        let command = [command, &["--jobs", "1"]].concat();
        let child = place.command(&command).spawn().unwrap();
        a_while();
        let ran = ended_by(child, "INT", &command.join(" "));
        assert_eq!(ran.status, Some(130), "{command:?}: {}", ran.stderr);
    }
    drop(slow);
}
