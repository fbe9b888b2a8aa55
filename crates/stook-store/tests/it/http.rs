//! Directories of web servers: the contract against nginx, and what servers do that no real one does when asked to.

use std::fs::FileTimes;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use stook_store::{
    Advice, Download, HttpStore, Interruption, Settings, Silent, Store, StoreCause, StoreError,
    StoredFile,
};
use stook_testkit::servers::{Canned, Nginx, Request};

use crate::contract::{self, Place};

struct Folder {
    nginx: Nginx,
    /// nginx tells versions apart by size and second.
    second: AtomicU64,
}

impl Place for Folder {
    fn store(&self) -> Box<dyn Store> {
        Box::new(HttpStore::new(&self.nginx.url(), &Settings::default()).unwrap())
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        let path = self.nginx.root().join(name);
        std::fs::write(&path, bytes).unwrap();
        let second = self.second.fetch_add(1, Ordering::Relaxed);
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + second);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_times(FileTimes::new().set_modified(time)).unwrap();
    }
}

fn nginx(extra: &str) -> Option<Nginx> {
    let nginx = Nginx::start(extra).unwrap();
    if nginx.is_none() {
        stook_testkit::skip!("nginx is not installed");
    }
    nginx
}

#[test]
fn a_web_server_keeps_the_contract() {
    if nginx("").is_none() {
        return;
    }
    contract::check(&|| Folder {
        nginx: nginx("").unwrap(),
        second: AtomicU64::new(0),
    });
}

#[test]
fn versions_are_told_apart_by_time_where_there_are_no_entity_tags() {
    if nginx("").is_none() {
        return;
    }
    contract::check(&|| Folder {
        nginx: nginx("etag off;").unwrap(),
        second: AtomicU64::new(0),
    });
}

fn store(url: &str) -> HttpStore {
    let mut settings = Settings::default();
    settings.network.idle_timeout = Duration::from_secs(1);
    HttpStore::new(url, &settings).unwrap()
}

fn file(size: u64, version: Option<&str>) -> StoredFile {
    StoredFile {
        name: "000000.tar".to_owned(),
        size,
        version: version.map(|version| stook_store::FileVersion(version.to_owned())),
    }
}

fn answer(stream: &mut TcpStream, head: &str, body: &[u8]) {
    // Whoever asked may have read enough.
    let _ = write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\n\r\n");
    let _ = stream.write_all(body);
}

/// A store whose server sends this to every request.
fn always(head: &'static str, body: &'static [u8]) -> (Canned, HttpStore) {
    let server = Canned::start(move |_, stream| answer(stream, head, body));
    let store = store(&server.url());
    (server, store)
}

fn get(store: &dyn Store, size: Option<u64>) -> Result<Vec<u8>, StoreError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("target");
    let download = Download {
        name: "000000.tar",
        path: &path,
        size,
    };
    let mut result = Ok(());
    store.get(&[download], &Silent, &mut |_, got| result = got)?;
    match result {
        Ok(()) => Ok(std::fs::read(&path).unwrap()),
        Err(error) => {
            assert!(!path.exists(), "a part stayed");
            Err(error)
        }
    }
}

#[test]
fn a_server_that_ignores_ranges_gives_parts_of_small_files_only() {
    let (_server, store) = always("200 OK\r\nContent-Length: 10", b"0123456789");
    let mut buffer = [0; 4];
    assert_eq!(
        store.read_range(&file(10, None), 3, &mut buffer).unwrap(),
        4
    );
    assert_eq!(&buffer, b"3456");
    let (_server, store) = always("200 OK\r\nContent-Length: 10000000000", b"0123456789");
    let error = store.read_range(&file(10_000_000_000, None), 3, &mut buffer);
    let error = error.unwrap_err();
    assert!(matches!(error.cause, StoreCause::NoRanges), "{error}");
    // It is not the file that it was.
    let error = store
        .read_range(&file(10, None), 3, &mut buffer)
        .unwrap_err();
    assert!(matches!(error.cause, StoreCause::Changed), "{error}");
}

#[test]
fn parts_are_those_that_were_asked_for() {
    let mut buffer = [0; 4];
    for (head, expected) in [
        (
            "206 Partial Content\r\nContent-Range: bytes 0-3/10\r\nContent-Length: 4",
            "127.0.0.1 gave an unknown answer: it sends other bytes than asked for",
        ),
        (
            "206 Partial Content\r\nContent-Length: 4",
            "127.0.0.1 gave an unknown answer: it does not say which bytes it sends",
        ),
        (
            "206 Partial Content\r\nContent-Range: bytes 3-6/11\r\nContent-Length: 4",
            "the file has changed in the store",
        ),
        (
            "206 Partial Content\r\nContent-Range: bytes 3-6/10\r\nETag: \"other\"\r\nContent-Length: 4",
            "the file has changed in the store",
        ),
        (
            "416 Range Not Satisfiable\r\nContent-Length: 4",
            "the file has changed in the store",
        ),
        (
            "412 Precondition Failed\r\nContent-Length: 4",
            "the file has changed in the store",
        ),
    ] {
        let (_server, store) = always(head, b"3456");
        let error = store.read_range(&file(10, Some("\"known\"")), 3, &mut buffer);
        assert_eq!(error.unwrap_err().cause.to_string(), expected);
    }
}

#[test]
fn a_range_is_asked_for_of_a_known_version() {
    let server = Canned::start(|request: &Request, stream| {
        assert_eq!(request.header("range"), Some("bytes=3-6"));
        let time = "Sun, 22 Nov 2026 10:00:00 GMT";
        let validator = match request.header("if-unmodified-since") {
            None => {
                assert_eq!(request.header("if-match"), Some("\"known\""));
                assert_eq!(request.header("if-range"), Some("\"known\""));
                "ETag: \"known\"".to_owned()
            }
            Some(asked) => {
                assert_eq!((asked, request.header("if-range")), (time, None));
                format!("ETag: W/\"weak\"\r\nLast-Modified: {time}")
            }
        };
        let head = "206 Partial Content\r\nContent-Range: bytes 3-6/10\r\nContent-Length: 4";
        answer(stream, &format!("{head}\r\n{validator}"), b"3456");
    });
    let store = store(&server.url());
    let mut buffer = [0; 4];
    for version in ["\"known\"", "Sun, 22 Nov 2026 10:00:00 GMT"] {
        let known = file(10, Some(version));
        assert_eq!(store.read_range(&known, 3, &mut buffer).unwrap(), 4);
    }
}

/// Caches and simple servers answer whatever they have.
#[test]
fn a_server_that_ignores_conditions_is_found_out() {
    const WITHOUT: &str =
        "127.0.0.1 gave an unknown answer: it does not say of which version the bytes are";
    const CHANGED: &str = "the file has changed in the store";
    let (tag, time) = ("\"known\"", "Sun, 22 Nov 2026 10:00:00 GMT");
    let older = "Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT";
    let mut buffer = [0; 4];
    for (version, validator, expected) in [
        (tag, "ETag: \"other\"", CHANGED),
        (tag, "X: y", WITHOUT),
        (tag, "ETag: W/\"known\"", WITHOUT),
        (time, older, CHANGED),
        (time, "X: y", WITHOUT),
    ] {
        let server = Canned::start(move |request, stream| {
            let range = "206 Partial Content\r\nContent-Range: bytes 3-6/10\r\nContent-Length: 4";
            // The whole of it, as who heeds `If-Range` answers of another file.
            let whole = "200 OK\r\nContent-Length: 10";
            let (head, body): (_, &[u8]) = match request.target.ends_with("whole") {
                true => (whole, b"0123456789"),
                false => (range, b"3456"),
            };
            answer(stream, &format!("{head}\r\n{validator}"), body);
        });
        let store = store(&server.url());
        for name in ["part", "whole"] {
            let file = StoredFile {
                name: name.to_owned(),
                ..file(10, Some(version))
            };
            let error = store.read_range(&file, 3, &mut buffer).unwrap_err();
            assert_eq!(
                error.cause.to_string(),
                expected,
                "{version} {validator} {name}"
            );
        }
    }
}

#[test]
fn truncated_answers_are_errors() {
    let (_server, store) = always("200 OK\r\nContent-Length: 20", b"0123456789");
    let error = get(&store, None).unwrap_err();
    assert_eq!(error.advice(), Advice::Retry, "{error}");
    let mut buffer = [0; 20];
    let error = store
        .read_range(&file(20, None), 0, &mut buffer)
        .unwrap_err();
    assert_eq!(error.advice(), Advice::Retry, "{error}");
    // Nobody knows how long it is.
    let (_server, store) = always("200 OK", b"0123456789");
    let error = get(&store, None).unwrap_err();
    assert!(matches!(error.cause, StoreCause::NoSize), "{error}");
    assert_eq!(get(&store, Some(10)).unwrap(), b"0123456789");
    let error = get(&store, Some(20)).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Different(_)), "{error}");
    let (_server, store) = always(
        "200 OK\r\nTransfer-Encoding: chunked",
        b"a\r\n0123456789\r\n0\r\n\r\n",
    );
    assert_eq!(get(&store, None).unwrap(), b"0123456789");
    let (_server, store) = always(
        "200 OK\r\nTransfer-Encoding: chunked",
        b"a\r\n0123456789\r\n",
    );
    assert_eq!(get(&store, None).unwrap_err().advice(), Advice::Retry);
    let (_server, store) = always(
        "200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 10",
        b"0123456789",
    );
    get(&store, None).unwrap_err();
}

#[test]
fn redirects_stay_on_the_server() {
    let server = Canned::start(|request: &Request, stream| match &*request.target {
        "/a/000000.tar" => answer(
            stream,
            "302 Found\r\nLocation: /b/000000.tar\r\nContent-Length: 0",
            b"",
        ),
        "/b/000000.tar" => answer(stream, "200 OK\r\nContent-Length: 5", b"there"),
        "/away/000000.tar" => answer(
            stream,
            "301 Moved Permanently\r\nLocation: https://elsewhere.example/000000.tar\r\nContent-Length: 0",
            b"",
        ),
        _ => answer(
            stream,
            "307 Temporary Redirect\r\nLocation: /round/000000.tar\r\nContent-Length: 0",
            b"",
        ),
    });
    let url = server.url();
    assert_eq!(get(&store(&format!("{url}/a")), None).unwrap(), b"there");
    let error = get(&store(&format!("{url}/away/")), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot get `000000.tar` from `{url}/away`: the server redirects to `https://elsewhere.example`, another server"
        )
    );
    assert_eq!(error.advice(), Advice::GiveUp);
    get(&store(&format!("{url}/round")), None).unwrap_err();
}

#[test]
fn refusals_have_causes() {
    for (head, expected, advice) in [
        ("404 Not Found", "no such file", Advice::GiveUp),
        ("401 Unauthorized", "not logged in", Advice::Login),
        ("403 Forbidden", "access denied", Advice::GiveUp),
        (
            "503 Service Unavailable",
            "127.0.0.1 says: 503 Service Unavailable",
            Advice::Retry,
        ),
    ] {
        let server = Canned::start(move |_, stream| {
            answer(stream, &format!("{head}\r\nContent-Length: 0"), b"");
        });
        let store = store(&server.url());
        let error = get(&store, None).unwrap_err();
        assert_eq!(
            (error.cause.to_string(), error.advice()),
            (expected.to_owned(), advice)
        );
    }
}

#[test]
fn a_server_that_says_nothing_ends_in_time() {
    let silent = Canned::start(|_, _| std::thread::sleep(Duration::from_secs(30)));
    let error = get(&store(&silent.url()), None).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Timeout(1)), "{error}");
    assert_eq!(error.advice(), Advice::Retry);
    let half = Canned::start(|_, stream| {
        answer(stream, "200 OK\r\nContent-Length: 20", b"0123456789");
        std::thread::sleep(Duration::from_secs(30));
    });
    let error = get(&store(&half.url()), None).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Timeout(1)), "{error}");
}

/// How long an interruption may take; a second, and what a busy machine adds.
const SOON: Duration = Duration::from_secs(5);

#[test]
fn an_interruption_ends_what_waits() {
    let silent = Canned::start(|_, _| std::thread::sleep(Duration::from_secs(30)));
    let asked = Arc::new(AtomicBool::new(false));
    let mut settings = Settings::default();
    let is_asked = Arc::clone(&asked);
    settings.interruption = Interruption::new(move || is_asked.load(Ordering::Relaxed));
    let store = HttpStore::new(&silent.url(), &settings).unwrap();
    let begin = Instant::now();
    let error = std::thread::scope(|scope| {
        let reading = scope.spawn(|| store.read_range(&file(10, None), 0, &mut [0; 4]));
        std::thread::sleep(Duration::from_millis(200));
        asked.store(true, Ordering::Relaxed);
        reading.join().unwrap().unwrap_err()
    });
    assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");
    assert!(begin.elapsed() < SOON);
}

#[test]
fn a_server_that_is_gone_comes_back() {
    let Some(mut nginx) = nginx("limit_rate 1m;") else {
        return;
    };
    let bytes = vec![7; 16 << 20];
    std::fs::write(nginx.root().join("000000.tar"), &bytes).unwrap();
    let store = store(&nginx.url());
    let error = std::thread::scope(|scope| {
        let getting = scope.spawn(|| get(&store, None));
        std::thread::sleep(Duration::from_millis(500));
        nginx.kill();
        getting
            .join()
            .unwrap()
            .map(|bytes| bytes.len())
            .unwrap_err()
    });
    assert_eq!(error.advice(), Advice::Retry, "{error}");
    let error = get(&store, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot get `000000.tar` from `{}`: connection refused",
            nginx.url()
        )
    );
    assert_eq!(error.advice(), Advice::Retry);
    nginx.restart().unwrap();
    assert!(get(&store, None).unwrap() == bytes);
}

#[test]
fn secrets_of_a_url_are_not_named() {
    let store = store("http://me:secret@127.0.0.1:1/path/?token=secret");
    assert_eq!(store.name(), "http://127.0.0.1:1/path");
    for bad in ["http://", "nothing", "data:text"] {
        HttpStore::new(bad, &Settings::default()).unwrap_err();
    }
}
