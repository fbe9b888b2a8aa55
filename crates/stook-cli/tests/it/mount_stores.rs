//! Mounts of archives on web servers: files fetched beforehand, several mirrors, servers that stall, and what the server of the mount
//! says of its time.

use std::fs;
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use stook_testkit::servers::{Canned, LinkOptions, Nginx, Request, SlowLink};
use stook_testkit::{Random, skip};

use crate::mount::{Point, has_fuse};
use crate::place::{Place, Ran, wait_until};

/// Files in each of the two folders.
const FILES: usize = 20;

/// An archive of two folders with files of some length, half of it noise.
fn place(len: usize, options: &[&str]) -> Place {
    let place = Place::new();
    for folder in ["one", "two"] {
        fs::create_dir_all(place.path("src").join(folder)).unwrap();
        for number in 0..FILES {
            let mut content = Random::new(number as u64).bytes(len / 2);
            content.resize(len, folder.as_bytes()[0]);
            place.write(&format!("src/{folder}/f{number}"), content);
        }
    }
    place.stdout(&[&["create", "src", "archive"], options].concat());
    fs::create_dir(place.path("point")).unwrap();
    place
}

/// Web servers that have the archive; none if nginx is not installed.
fn nginx(place: &Place) -> Option<Nginx> {
    let Some(nginx) = Nginx::start("").unwrap() else {
        skip!("nginx is not installed");
        return None;
    };
    for name in place.names("archive") {
        fs::copy(place.path("archive").join(&name), nginx.root().join(&name)).unwrap();
    }
    Some(nginx)
}

fn mount(place: &Place, arguments: &[&str]) -> Ran {
    let words = [&["mount"], arguments, &["point"]].concat();
    let mut command = place.command(&words);
    command.env("XDG_CACHE_HOME", place.path("indices"));
    Ran::of(command.output().unwrap())
}

fn mounted(place: &Place, arguments: &[&str]) {
    let ran = mount(place, arguments);
    assert_eq!(ran.status, Some(0), "{arguments:?}: {}", ran.stderr);
}

fn talk(place: &Place, arguments: &[&str]) -> String {
    place.stdout(&[&["talk", "point"], arguments].concat())
}

fn cached(place: &Place, name: &str) -> u64 {
    let stats: Value = serde_json::from_str(&talk(place, &["stats"])).unwrap();
    stats["cache"][name].as_u64().unwrap()
}

fn assert_same_files(place: &Place, folder: &str) {
    for number in 0..FILES {
        let name = format!("{folder}/f{number}");
        let (found, expected) = (
            place.path("point").join(&name),
            place.path("src").join(&name),
        );
        assert!(
            fs::read(found).unwrap() == fs::read(expected).unwrap(),
            "{name}"
        );
    }
}

#[test]
fn files_are_fetched_before_they_are_read_and_then_need_no_server() {
    if !has_fuse() {
        return;
    }
    for options in [&[][..], &["--zstd"]] {
        let place = place(60_000, options);
        let Some(nginx) = nginx(&place) else { return };
        let _point = Point(&place);
        mounted(&place, &[&nginx.url(), "--cache", "blocks"]);
        let fetched: Value = serde_json::from_str(&talk(&place, &["prefetch", "two"])).unwrap();
        assert_eq!(
            (&fetched["files"], &fetched["bytes"]),
            (&20.into(), &1_200_000.into())
        );
        assert!(
            fetched["fetched_bytes"].as_u64().unwrap() > 600_000,
            "{fetched}"
        );
        assert_eq!(
            (&fetched["failed_blocks"], &fetched["is_interrupted"]),
            (&0.into(), &false.into())
        );
        talk(&place, &["sync"]);
        assert_eq!(
            cached(&place, "store_bytes"),
            cached(&place, "disk_written_bytes")
        );
        let ran = place.run(&["talk", "point", "prefetch", "two/f1?", "none", "two/f0"]);
        assert_eq!(
            (ran.status, &*ran.stderr),
            (Some(3), "warning: nothing matches `none`\n")
        );
        let again: Value = serde_json::from_str(ran.text()).unwrap();
        assert_eq!(
            (&again["files"], &again["fetched_bytes"]),
            (&11.into(), &0.into())
        );
        // What it needs is on the disk.
        drop(nginx);
        talk(&place, &["evict", "--memory"]);
        assert_same_files(&place, "two");
        assert!(cached(&place, "disk_bytes") > 600_000);
        talk(&place, &["quit"]);
    }
}

#[test]
fn a_mount_fetches_files_while_it_is_used() {
    if !has_fuse() {
        return;
    }
    let place = place(60_000, &[]);
    let Some(nginx) = nginx(&place) else { return };
    let _point = Point(&place);
    let url = nginx.url();
    mounted(
        &place,
        &[
            &url,
            "--cache",
            "blocks",
            "--prefetch",
            "one",
            "-o",
            "prefetch=two/f3,log=log",
        ],
    );
    let log = || fs::read_to_string(place.path("log")).unwrap_or_default();
    let begin = Instant::now();
    while !log().contains("prefetched 21 files: ") {
        assert!(begin.elapsed() < Duration::from_secs(60), "{}", log());
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(nginx);
    assert_same_files(&place, "one");
    talk(&place, &["quit"]);
    // Volumes on this machine are read where they are.
    mounted(&place, &["archive", "--prefetch", "one", "--log", "log"]);
    assert_same_files(&place, "two");
    let ran = place.run(&["talk", "point", "prefetch", "one"]);
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr.contains("its volumes are on this machine"),
        "{}",
        ran.stderr
    );
    talk(&place, &["quit"]);
    assert!(
        log().contains("nothing is prefetched: its volumes are"),
        "{}",
        log()
    );
}

#[test]
fn a_prefetch_ends_with_who_asked_for_it_and_others_are_answered_meanwhile() {
    if !has_fuse() {
        return;
    }
    let place = place(1_000_000, &[]);
    let Some(nginx) = nginx(&place) else { return };
    let slow = LinkOptions {
        round_trip: Duration::from_millis(5),
        bytes_per_second: Some(2_000_000),
    };
    let link = SlowLink::start(nginx.port(), slow).unwrap();
    let _point = Point(&place);
    mounted(&place, &[&link.url(), "--cache", "blocks"]);
    let mut asking: Child = place
        .command(&["talk", "point", "prefetch", "*"])
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    assert!(wait_until(&mut asking, || cached(&place, "store_bytes") > 1_000_000));
    // A reader of the same blocks does not fetch them again.
    let content = fs::read(place.path("point/one/f0")).unwrap();
    assert!(content == fs::read(place.path("src/one/f0")).unwrap());
    asking.kill().unwrap();
    asking.wait().unwrap();
    talk(&place, &["sync"]);
    let stopped = cached(&place, "store_bytes");
    std::thread::sleep(Duration::from_secs(2));
    talk(&place, &["sync"]);
    let later = cached(&place, "store_bytes");
    // All of it would take 20 s; what had begun may end.
    assert!(
        later < 30_000_000 && later - stopped < 10_000_000,
        "{stopped} {later}"
    );
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(cached(&place, "store_bytes"), later);
    talk(&place, &["quit"]);
}

#[test]
fn of_two_mirrors_one_may_die_and_the_other_may_change() {
    if !has_fuse() {
        return;
    }
    let place = place(200_000, &[]);
    let (Some(mut dying), Some(lying)) = (nginx(&place), nginx(&place)) else {
        return;
    };
    let volume = lying.root().join("000000.tar");
    let good = fs::read(&volume).unwrap();
    let _point = Point(&place);
    let (first, second) = (dying.url(), lying.url());
    // The index is fetched from the one that has it.
    fs::remove_file(dying.root().join("index.db")).unwrap();
    mounted(&place, &[&first, "--mirror", &second, "--log", "log"]);
    assert_same_files(&place, "one");
    let asked = |nginx: &Nginx| {
        nginx
            .requests()
            .unwrap()
            .iter()
            .filter(|(method, .., path)| method == "GET" && path == "/000000.tar")
            .count()
    };
    assert!(asked(&dying) > 0 && asked(&lying) == 0);
    dying.kill();
    talk(&place, &["evict"]);
    assert_same_files(&place, "two");
    assert!(asked(&lying) > 0);
    // Other bytes of the same length under the same name, with another time.
    let fake = Random::new(9).bytes(good.len());
    fs::write(lying.root().join("new"), fake).unwrap();
    let new = fs::File::options()
        .write(true)
        .open(lying.root().join("new"))
        .unwrap();
    let time = fs::metadata(&volume).unwrap().modified().unwrap();
    new.set_modified(time + Duration::from_secs(7)).unwrap();
    fs::rename(lying.root().join("new"), &volume).unwrap();
    dying.restart().unwrap();
    talk(&place, &["evict"]);
    stook_sys::drop_caches(stook_sys::Forget::Everything).unwrap();
    assert_same_files(&place, "one");
    assert_same_files(&place, "two");
    talk(&place, &["quit"]);
    let log = fs::read_to_string(place.path("log")).unwrap_or_default();
    assert_eq!(log, "");
    // A mirror that parts cannot be read of is none.
    let ran = mount(&place, &[&second, "--mirror", "hpss:/a/b"]);
    assert_eq!(ran.status, Some(2));
    assert!(ran.stderr.contains("--mirror"), "{}", ran.stderr);
}

/// Answers as a web server does that has the files of a folder.
fn answer(folder: &std::path::Path, request: &Request, stream: &mut TcpStream) {
    use std::io::Write;
    let bytes = fs::read(folder.join(&request.target[1..]));
    let Ok(bytes) = bytes else {
        let _ = stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    };
    let range = request.header("range").and_then(|range| {
        let (first, last) = range.strip_prefix("bytes=")?.split_once('-')?;
        Some(first.parse::<usize>().ok()?..last.parse::<usize>().ok()? + 1)
    });
    let (status, part) = match &range {
        Some(range) => {
            let (first, last) = (range.start, range.end - 1);
            (
                format!(
                    "206 Partial Content\r\nContent-Range: bytes {first}-{last}/{}",
                    bytes.len()
                ),
                &bytes[range.clone()],
            )
        }
        None => ("200 OK".to_owned(), &bytes[..]),
    };
    let len = part.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nETag: \"one\"\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n"
    );
    // The client may be gone.
    let _ = stream.write_all(head.as_bytes());
    if request.method != "HEAD" {
        let _ = stream.write_all(part);
    }
}

#[test]
fn a_reset_at_the_begin_and_a_server_that_stalls_are_survived() {
    if !has_fuse() {
        return;
    }
    let place = place(100_000, &[]);
    let (looks, ranges) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let folder = place.path("archive");
    let (looked, ranged) = (Arc::clone(&looks), Arc::clone(&ranges));
    let server = Canned::start(move |request, stream| {
        if request.method == "HEAD" && looked.fetch_add(1, Ordering::Relaxed) < 2 {
            // The connection closes without an answer.
            return;
        }
        if request.header("range").is_some() && ranged.fetch_add(1, Ordering::Relaxed) == 0 {
            std::thread::sleep(Duration::from_secs(40));
            return;
        }
        answer(&folder, request, stream);
    });
    let _point = Point(&place);
    mounted(&place, &[&server.url(), "--log", "log"]);
    assert!(looks.load(Ordering::Relaxed) > 2);
    let begin = Instant::now();
    assert_same_files(&place, "one");
    let waited = begin.elapsed();
    assert!((9..30).contains(&waited.as_secs()), "{waited:?}");
    assert!(ranges.load(Ordering::Relaxed) > 1);
    talk(&place, &["quit"]);
    assert!(!place.path("log").exists() || fs::read(place.path("log")).unwrap().is_empty());
}

#[test]
fn the_timers_of_a_mount_name_what_was_waited_for() {
    if !has_fuse() {
        return;
    }
    let place = place(100_000, &["--zstd"]);
    let Some(nginx) = nginx(&place) else { return };
    let link = SlowLink::start(nginx.port(), LinkOptions::wide_area()).unwrap();
    let _point = Point(&place);
    mounted(&place, &[&link.url(), "--cache", "blocks"]);
    let ran = place.run(&["talk", "point", "timers", "--format", "trace"]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.stderr.contains("no single calls are recorded"),
        "{}",
        ran.stderr
    );
    talk(&place, &["timers", "--record", "cpu"]);
    assert_same_files(&place, "one");
    let tree = talk(&place, &["timers"]);
    let (callbacks, helpers) = tree.split_once("helper threads\n").unwrap();
    for scope in [
        "\nmount.read ",
        " fetch ",
        " decompress ",
        " cache write ",
        "blocked%",
        "waiting for a fetch: ",
    ] {
        assert!(callbacks.contains(scope), "{scope}: {tree}");
    }
    assert!(!helpers.contains("mount."), "{tree}");
    let timers: Value =
        serde_json::from_str(&talk(&place, &["timers", "--format", "json"])).unwrap();
    let of_callbacks = |name: &str| timers["callbacks"][name].as_u64().unwrap();
    let (total, waiting) = (
        of_callbacks("total_ns"),
        of_callbacks("waiting_for_fetch_ns"),
    );
    // A round trip at least.
    assert!(waiting >= 20_000_000 && total >= waiting, "{timers}");
    assert!(of_callbacks("blocked_ns") >= waiting / 2, "{timers}");
    assert!(talk(&place, &["timers", "--format", "folded"]).contains("mount.read;"));
    assert!(talk(&place, &["timers", "--format", "svg"]).contains("<svg"));

    talk(&place, &["timers", "--record", "calls"]);
    talk(&place, &["evict"]);
    stook_sys::drop_caches(stook_sys::Forget::Everything).unwrap();
    assert_same_files(&place, "one");
    let trace: Value =
        serde_json::from_str(&talk(&place, &["timers", "--format", "trace"])).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let has = |name: &str| {
        events
            .iter()
            .any(|event| event["name"] == name && event["ph"] == "X")
    };
    assert!(
        has("mount.read") && has("decompress") && has("fetch"),
        "{trace}"
    );
    talk(&place, &["quit"]);
}

#[test]
fn a_bench_of_a_mount_proves_its_states_and_counts_its_server() {
    if !has_fuse() {
        return;
    }
    let _alone = crate::bench_cache::alone();
    let place = place(200_000, &["--zstd"]);
    let Some(nginx) = nginx(&place) else { return };
    let _point = Point(&place);
    mounted(&place, &[&nginx.url(), "--cache", "blocks"]);
    let read = ["--", "sh", "-c", "cat one/* | wc -c"];
    let bench = |arguments: &[&str]| {
        let words = [&["bench", "cache", "--rounds", "2"], arguments, &read].concat();
        // It is known by the working directory.
        let mut command = place.command(&words);
        let ran = Ran::of(command.current_dir(place.path("point")).output().unwrap());
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        ran
    };
    let lines = crate::place::json_lines(bench(&["--json"]).text());
    for state in ["cold", "warm", "hot"] {
        let samples = lines.iter().filter(|line| line["labels"]["state"] == state);
        let samples: Vec<&Value> = samples.collect();
        assert_eq!(samples.len(), 2);
        for sample in samples {
            let proof = |name: &str| sample["proof"][name].as_f64().unwrap();
            assert_eq!(proof("store_bytes") > 0.0, state == "cold", "{sample}");
            assert_eq!(proof("cache_bytes") > 0.0, state == "warm", "{sample}");
            assert!(proof("client_blocked_seconds") >= 0.0);
            // Of the files in the mount the kernel says what it has.
            assert_eq!(proof("pages_share") > 0.9, state == "hot", "{sample}");
            assert!(sample["served_seconds"].is_number());
            if state == "hot" {
                assert_eq!(proof("waiting_for_fetch_seconds"), 0.0, "{sample}");
            } else {
                assert!(proof("callback_seconds") > 0.0, "{sample}");
            }
        }
    }
    let text = bench(&[]);
    for part in [
        "served s",
        "callbacks / BLOCKED",
        "cold: what the server of the mount keeps dropped, then data, names and inodes dropped",
        "warm: what the server of the mount has in memory dropped, then ",
    ] {
        assert!(text.text().contains(part), "{part}: {}", text.text());
    }
    let ran = place.run(&["bench", "cache", "--mount", "src", "--", "true"]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.stderr.contains("no archive is mounted there"),
        "{}",
        ran.stderr
    );
    talk(&place, &["quit"]);
}

#[test]
fn a_profile_of_a_mount_shows_what_decodes() {
    if !has_fuse() || crate::profile::is_skipped() {
        return;
    }
    let _alone = crate::bench_cache::alone();
    let place = Place::new();
    fs::create_dir_all(place.path("src/one")).unwrap();
    fs::create_dir(place.path("point")).unwrap();
    for number in 0..32 {
        let noise = Random::new(number).bytes(2_000_000);
        let text: Vec<u8> = noise.iter().map(|byte| b'a' + byte % 16).collect();
        place.write(&format!("src/one/f{number}"), text);
    }
    place.stdout(&["create", "src", "archive", "--zstd"]);
    let _point = Point(&place);
    mounted(&place, &["archive"]);
    let read = ["--", "sh", "-c", "cat point/one/* >read"];
    for (state, folder) in [("cold", "cold"), ("warm", "warm")] {
        let words = [
            &[
                "profile", "--watch", "point", "--cache", state, "--out", folder,
            ],
            &read[..],
        ]
        .concat();
        let ran = place.run(&words);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let folded = fs::read_to_string(place.path(folder).join("on-cpu.folded")).unwrap();
        let decodes =
            |line: &&str| line.contains("ZSTD_decompress") || line.contains("HUF_decompress");
        assert!(folded.lines().any(|line| decodes(&line)), "{folded}");
        let drawing = fs::read_to_string(place.path(folder).join("on-cpu.svg")).unwrap();
        assert!(drawing.contains("_decompress"));
        assert!(place.path(folder).join("off-cpu.svg").exists());
    }
    // The command is no part of it, and its failure is an error.
    assert!(
        !fs::read_to_string(place.path("warm/on-cpu.folded"))
            .unwrap()
            .contains("cat;")
    );
    let ran = place.run(&[
        "profile", "--watch", "point", "--out", "failed", "--", "false",
    ]);
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr
            .contains("`false` failed while its server was recorded"),
        "{}",
        ran.stderr
    );
    let ran = place.run(&["profile", "--watch", "src", "--out", "none", "--", "true"]);
    assert_eq!(ran.status, Some(2));
    assert!(
        ran.stderr.contains("no process is found that serves it"),
        "{}",
        ran.stderr
    );
    talk(&place, &["quit"]);
}
