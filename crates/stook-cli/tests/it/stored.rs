//! Archives in stores: the commands that read take a URL, and print what they print of the local archive.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use stook_testkit::servers::{Canned, Nginx, start_moto};
use stook_testkit::tree;

use crate::place::{Place, Ran, Signal};

fn place() -> Place {
    let place = Place::with(&tree! { "a" => file(b"first"), "d/b" => file(vec![b'x'; 300_000]) });
    place.stderr(&["create", "src", "arc"]);
    place
}

fn serve(place: &Place) -> Option<Nginx> {
    let Some(nginx) =
        Nginx::start("location /away/ { return 301 https://elsewhere.example/; }").unwrap()
    else {
        stook_testkit::skip!("nginx is not installed");
        return None;
    };
    for name in place.names("arc") {
        std::fs::copy(place.path("arc").join(&name), nginx.root().join(&name)).unwrap();
    }
    Some(nginx)
}

/// Runs a command with a cache of its own, and variables besides.
fn run(place: &Place, arguments: &[&str], variables: &[(String, String)]) -> Ran {
    let mut command = place.command(arguments);
    command.env("XDG_CACHE_HOME", place.path("cache"));
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    Ran::of(command.output().unwrap())
}

/// Every command that reads prints the same of both.
fn reads_alike(place: &Place, url: &str, variables: &[(String, String)]) {
    for arguments in [
        &["list", "arc"][..],
        &["list", "arc", "-l"],
        &["list", "arc", "--json"],
        &["cat", "arc", "d/b"],
        &["check", "arc"],
        &["check", "arc", "--volumes"],
        &["list", "arc", "--runs"],
        &["cat", "arc", "nothing"],
    ] {
        let local = place.run(arguments);
        let there: Vec<&str> = arguments
            .iter()
            .map(|word| if *word == "arc" { url } else { word })
            .collect();
        let stored = run(place, &there, variables);
        assert_eq!(
            stored.status, local.status,
            "{arguments:?}: {}",
            stored.stderr
        );
        assert!(stored.stdout == local.stdout, "{arguments:?}");
        assert_eq!(
            stored.stderr.replace(url, "arc"),
            local.stderr,
            "{arguments:?}"
        );
    }
    let extracted = run(place, &["extract", url, "--into", "out"], variables);
    assert_eq!(extracted.status, Some(0), "{}", extracted.stderr);
    place.assert_same_tree("src", "out");
}

#[test]
fn commands_that_read_take_the_url_of_a_web_server() {
    let place = place();
    let Some(nginx) = serve(&place) else { return };
    reads_alike(&place, &nginx.url(), &[]);
    let verbose = run(&place, &["-v", "cat", &nginx.url(), "a"], &[]);
    assert_eq!(verbose.text(), "first");
    assert!(
        verbose.stderr.contains("fetched 0 bytes of the index, "),
        "{}",
        verbose.stderr
    );
    // Nothing was written there.
    let requests = nginx.requests().unwrap();
    assert!(
        requests
            .iter()
            .all(|request| ["GET", "HEAD"].contains(&&*request.0))
    );
}

#[test]
fn what_was_kept_is_read_without_the_server() {
    let place = place();
    let Some(mut nginx) = serve(&place) else {
        return;
    };
    let url = nginx.url();
    let kept = ["cat", &url, "d/b", "--cache", "kept"];
    let first = run(&place, &[&["-v"][..], &kept].concat(), &[]);
    assert_eq!((first.status, first.stdout.len()), (Some(0), 300_000));
    assert!(
        !first.stderr.contains(" 0 bytes of volumes"),
        "{}",
        first.stderr
    );
    let again = run(&place, &[&["-v"][..], &kept].concat(), &[]);
    let nothing = "fetched 0 bytes of the index, 0 bytes of volumes in 0 requests";
    assert!(again.stderr.contains(nothing), "{}", again.stderr);
    nginx.kill();
    let offline = run(&place, &[&kept[..], &["--offline"]].concat(), &[]);
    assert_eq!((offline.status, &*offline.stderr), (Some(0), ""));
    assert!(offline.stdout == first.stdout);
    // Without the directory nothing of the volume is here.
    let without = run(&place, &["cat", &url, "d/b", "--offline"], &[]);
    assert_eq!(without.status, Some(1));
    let expected = "is not in the cache, and stores are not asked";
    assert!(without.stderr.contains(expected), "{}", without.stderr);
    let unknown = format!("{url}/other");
    let unknown = run(&place, &["list", &unknown, "--offline"], &[]);
    let expected = format!(
        "error: cannot open `{url}/other`: there is no copy of its index here, and stores are not asked\nhint: the same without `--offline` fetches it\n"
    );
    assert_eq!((unknown.status, unknown.stderr), (Some(1), expected));
}

#[test]
fn a_directory_that_others_can_read_is_no_cache() {
    let place = place();
    let Some(nginx) = serve(&place) else { return };
    let kept = place.path("kept");
    std::fs::create_dir(&kept).unwrap();
    std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o755)).unwrap();
    let ran = run(&place, &["cat", &nginx.url(), "a", "--cache", "kept"], &[]);
    assert_eq!(ran.status, Some(1));
    assert_eq!(
        ran.stderr,
        "error: cannot use `kept` as a cache: its mode is 0755, and must be 0700\nhint: `chmod 700 kept`\n"
    );
    let ran = run(
        &place,
        &[
            "cat",
            &nginx.url(),
            "a",
            "--cache",
            "new",
            "--cache-size",
            "1K",
        ],
        &[],
    );
    assert_eq!(
        ran.stderr,
        "error: a cache needs 618752 bytes at least, not 1024\nhint: `--cache-size` sets it\n"
    );
}

#[test]
fn commands_that_read_take_the_url_of_an_object_store() {
    let Some(moto) = start_moto() else {
        stook_testkit::skip!("moto is not installed");
        return;
    };
    let place = place();
    let bucket = moto.new_bucket().unwrap();
    for name in place.names("arc") {
        let bytes = std::fs::read(place.path("arc").join(&name)).unwrap();
        moto.put(&format!("{bucket}/run/{name}"), &bytes).unwrap();
    }
    reads_alike(&place, &format!("s3://{bucket}/run"), &moto.variables());
}

#[test]
fn what_a_url_cannot_do_is_said() {
    let place = place();
    let Some(nginx) = serve(&place) else { return };
    let url = nginx.url();
    for (archive, expected) in [
        (
            format!("{url}/away"),
            format!(
                "error: cannot look at `index.db` in `{url}/away`: the server redirects to `https://elsewhere.example`, another server\n"
            ),
        ),
        (
            format!("{url}/none"),
            format!(
                "error: cannot open `{url}/none`: it is not an archive, it has no index.db\nhint: an archive is `index.db` and volumes in one place; check the URL\n"
            ),
        ),
        (
            "hpss:/run".to_owned(),
            "error: cannot read `hpss:/run`: the store cannot read a part of a file\nhint: `stook pull FOLDER --store URL` fetches it into a folder\n".to_owned(),
        ),
        (
            "ssh://127.0.0.1:1/run".to_owned(),
            "error: cannot look at `index.db` in `ssh://127.0.0.1:1/run`: ssh says: ssh: connect to host 127.0.0.1 port 1: Connection refused\nhint: try again later; what has arrived by then is not sent again\n".to_owned(),
        ),
    ] {
        let ran = run(&place, &["list", &archive], &[]);
        assert_eq!((ran.status, &*ran.stderr), (Some(1), &*expected));
    }
    let nobody = run(&place, &["list", "s3://bucket/run"], &[]);
    assert!(
        nobody.stderr.starts_with(
            "error: cannot open `s3://bucket/run`: not logged in\nhint: `AWS_ACCESS_KEY_ID`"
        ),
        "{}",
        nobody.stderr
    );
    let unknown = run(&place, &["list", "ftp://host/run"], &[]);
    assert_eq!(unknown.status, Some(2), "{}", unknown.stderr);
    // What writes has no business there yet.
    let update = run(&place, &["update", "src", &url], &[]);
    assert_eq!(update.status, Some(1), "{}", update.stderr);
}

#[test]
fn an_interruption_ends_a_read_that_waits_for_a_server() {
    let place = place();
    let index = std::fs::read(place.path("arc/index.db")).unwrap();
    let volume = std::fs::metadata(place.path("arc/000000.tar"))
        .unwrap()
        .len();
    let server = Canned::start(move |request, stream| {
        let (is_index, is_head) = (request.target == "/index.db", request.method == "HEAD");
        if request.target == "/index.db-journal" {
            // The next request would come on this connection, which ends here.
            let gone = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(gone);
            return;
        }
        if !is_index && !is_head {
            std::thread::sleep(Duration::from_secs(50));
        }
        let len = if is_index { index.len() as u64 } else { volume };
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {len}\r\nETag: \"1\"\r\nConnection: close\r\n\r\n"
        );
        let _ = stream.write_all(head.as_bytes());
        if !is_head {
            let _ = stream.write_all(&index);
        }
    });
    let mut command = place.command(&["check", &server.url()]);
    command.env("XDG_CACHE_HOME", place.path("cache"));
    let child = command.spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    std::thread::sleep(Duration::from_millis(1500));
    signal.send();
    let sent = Instant::now();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, Some(130), "{}", ran.stderr);
    // A second, and what a busy machine adds; without the signal it is a minute.
    assert!(
        sent.elapsed() < Duration::from_secs(20),
        "{:?}",
        sent.elapsed()
    );
}
