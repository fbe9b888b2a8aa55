//! `create --zstd`, and every command on what it makes.

use insta::assert_snapshot;
use stook_testkit::servers::Nginx;
use stook_testkit::{Random, Tree, file, tree};

use crate::place::Place;
use crate::zstash_front::Front;

fn small_tree() -> Tree {
    tree! { "a" => file(b"first"), "d/b" => file(vec![b'x'; 300_000]) }
}

fn created() -> Place {
    let place = Place::with(&small_tree());
    place.stderr(&["create", "src", "arc", "--zstd"]);
    place
}

#[test]
fn create_says_once_that_zstash_cannot_read_the_archive() {
    let place = Place::with(&small_tree());
    let said = place.run(&["create", "src", "arc", "--zstd"]).stderr;
    assert!(
        said.contains("volumes are compressed: zstash cannot read this archive"),
        "{said}"
    );
    assert_eq!(place.names("arc"), ["000000.tar.zst", "index.db"]);
    place.write("src/new", "new");
    let said = place.run(&["update", "src", "arc"]).stderr;
    assert!(!said.contains("zstash"), "{said}");
    let names = place.names("arc");
    assert_eq!(names, ["000000.tar.zst", "000001.tar.zst", "index.db"]);
}

#[test]
fn a_level_is_a_number_that_zstd_knows() {
    let place = Place::with(&small_tree());
    for (number, level) in ["--zstd=1", "--zstd=19", "--zstd"].into_iter().enumerate() {
        let archive = format!("arc{number}");
        place.stderr(&["create", "src", &archive, level]);
        place.stderr(&["check", &archive, "--volumes"]);
    }
    for refused in ["--zstd=0", "--zstd=23", "--zstd=fast"] {
        let ran = place.run(&["create", "src", "arc", refused]);
        assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    }
    assert_snapshot!(place.run(&["create", "src", "arc", "--zstd=0"]).stderr, @r"
    error: invalid value `0` for `--zstd[=<LEVEL>]`: a level of zstd is a number from 1 to 22
    hint: `--help` shows the options
    ");
}

#[test]
fn zstash_and_compression_do_not_go_together() {
    let place = Place::with(&small_tree());
    let ran = place.run(&["create", "src", "arc", "--zstd", "--compat", "zstash"]);
    assert_eq!(ran.status, Some(2), "{}", ran.stderr);
    place.stderr(&["create", "src", "arc", "--zstd"]);
    let ran = place.run(&["update", "src", "arc", "--compat", "zstash"]);
    assert_eq!(ran.status, Some(1));
    assert_snapshot!(ran.stderr, @r"
    error: cannot use `arc` as zstash would: its volumes are compressed, and zstash cannot read them
    hint: `stook list`, `stook extract` and the other commands of stook read it
    ");
    let front = Front::with(&small_tree());
    front
        .place
        .stderr(&["create", "src", "src/zstash", "--zstd"]);
    for command in [
        &["ls", "--hpss=none"][..],
        &["extract", "--hpss=none"],
        &["check", "--hpss=none"],
        &["update", "--hpss=none"],
    ] {
        let said = front.stderr(1, command);
        let is_clear = said.contains("as zstash would: its volumes are compressed");
        assert!(is_clear, "{command:?}: {said}");
    }
}

#[test]
fn every_command_that_reads_prints_what_it_prints_of_a_plain_archive() {
    let place = created();
    place.stderr(&["create", "src", "plain"]);
    let text = |ran: crate::place::Ran| {
        let stdout = String::from_utf8(ran.stdout).unwrap();
        (ran.status, stdout.replace(".tar.zst", ".tar"), ran.stderr)
    };
    for arguments in [
        &["list", "ARC"][..],
        &["list", "ARC", "-l"],
        &["list", "ARC", "--json"],
        &["cat", "ARC", "d/b"],
        &["cat", "ARC", "a"],
        &["diff", "src", "ARC"],
        &["check", "ARC"],
        &["check", "ARC", "a"],
        &["list", "ARC", "--runs", "--json"],
    ] {
        let of = |archive: &str| {
            let replaced = arguments.iter().map(|word| match *word {
                "ARC" => archive,
                word => word,
            });
            text(place.run(&replaced.collect::<Vec<_>>()))
        };
        let (status, stdout, _) = of("arc");
        let (plain_status, plain_stdout, _) = of("plain");
        assert_eq!(status, plain_status, "{arguments:?}");
        if !arguments.contains(&"--runs") && !arguments.contains(&"check") {
            assert_eq!(stdout, plain_stdout, "{arguments:?}");
        }
    }
    place.stderr(&["extract", "arc", "--into", "out"]);
    place.assert_same_tree("src", "out");
    assert!(
        place
            .run(&["status", "arc"])
            .text()
            .contains("000000.tar.zst")
    );
}

#[test]
fn volumes_travel_to_a_store_and_back() {
    let place = created();
    place.stderr(&["push", "arc", "--store", "store", "--keep-volumes"]);
    assert_eq!(place.names("store"), ["000000.tar.zst", "index.db"]);
    place.stderr(&["pull", "copy", "--store", "store"]);
    assert_eq!(place.names("copy"), ["000000.tar.zst", "index.db"]);
    place.stderr(&["check", "copy", "--volumes"]);
    place.stderr(&["extract", "copy", "--into", "out"]);
    place.assert_same_tree("src", "out");
    let status = place.run(&["status", "arc"]);
    assert!(
        status.text().contains("000000.tar.zst"),
        "{}",
        status.text()
    );
}

#[test]
fn a_web_server_gives_the_frames_that_are_asked_for() {
    let mut random = Random::new(5);
    let mut tree = small_tree();
    for number in 0..40 {
        tree.insert(format!("many/f{number:02}"), file(random.bytes(200_000)));
    }
    let place = Place::with(&tree);
    place.stderr(&["create", "src", "arc", "--zstd"]);
    let Some(nginx) = Nginx::start("").unwrap() else {
        return stook_testkit::skip!("nginx is not installed");
    };
    for name in place.names("arc") {
        std::fs::copy(place.path("arc").join(&name), nginx.root().join(&name)).unwrap();
    }
    let url = nginx.url();
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.env("XDG_CACHE_HOME", place.path("cache"));
        crate::place::Ran::of(command.output().unwrap())
    };
    let ran = run(&["cat", &url, "many/f20"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout == std::fs::read(place.path("src/many/f20")).unwrap());
    let checked = run(&["check", &url, "--volumes"]);
    assert_eq!(checked.status, Some(0), "{}", checked.stderr);
    let extracted = run(&["extract", &url, "--into", "out"]);
    assert_eq!(extracted.status, Some(0), "{}", extracted.stderr);
    place.assert_same_tree("src", "out");
}

#[test]
fn parts_of_a_plan_are_compressed() {
    let place = Place::with(&small_tree());
    let parts = place.run(&["plan", "src", "arc", "--zstd=5"]);
    assert_eq!(parts.status, Some(0), "{}", parts.stderr);
    for part in parts.text().lines() {
        place.stderr(&["build", part, "src"]);
    }
    place.stderr(&["commit", "arc"]);
    assert_eq!(place.names("arc"), ["000000.tar.zst", "index.db"]);
    place.stderr(&["check", "arc", "--volumes"]);
}

#[test]
fn a_damaged_frame_is_named_with_its_members() {
    let place = created();
    let path = place.path("arc/000000.tar.zst");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[40] ^= 1;
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, bytes).unwrap();
    let ran = place.run(&["check", "arc"]);
    assert_eq!(ran.status, Some(4));
    assert_snapshot!(ran.stderr, @r"
    error: 000000.tar.zst at byte 0, `a`: the frame at byte 0 of the file 000000.tar.zst is damaged: zstd says: Data corruption detected
    error: 000000.tar.zst at byte 2048, `d`: the frame at byte 0 of the file 000000.tar.zst is damaged: zstd says: Data corruption detected
    error: 000000.tar.zst at byte 3584, `d/b`: the frame at byte 0 of the file 000000.tar.zst is damaged: zstd says: Data corruption detected
    checked 0 members, 0 B, in 1 volume: 3 damages
    ");
    let ran = place.run(&["cat", "arc", "a"]);
    assert_eq!(ran.status, Some(4), "{}", ran.stderr);
}
