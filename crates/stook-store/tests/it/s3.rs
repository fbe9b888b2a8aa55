//! Object stores: the contract against moto, and what a server says that refuses.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stook_store::{
    Advice, Condition, Proof, S3Store, Settings, Silent, Store, StoreCause, StoreError, Stored,
    TransferObserver, Upload,
};
use stook_testkit::servers::{Canned, Moto, start_moto};

use crate::contract::{self, Place};

struct Bucket {
    moto: &'static Moto,
    bucket: String,
}

impl Bucket {
    fn new() -> Option<Self> {
        let Some(moto) = start_moto() else {
            stook_testkit::skip!("moto is not installed");
            return None;
        };
        let bucket = moto.new_bucket().unwrap();
        Some(Self { moto, bucket })
    }

    fn open(&self, prefix: &str) -> S3Store {
        S3Store::new(&self.bucket, prefix, &settings(self.moto.variables())).unwrap()
    }
}

fn settings(variables: Vec<(String, String)>) -> Settings {
    let mut settings = Settings::default();
    settings.network.idle_timeout = Duration::from_secs(20);
    settings.s3.variables = variables;
    settings
}

/// Settings for a server at a URL, with credentials.
fn settings_for(url: &str) -> Settings {
    let variables = [
        ("AWS_ENDPOINT_URL", url),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", "somebody"),
        ("AWS_SECRET_ACCESS_KEY", "a secret"),
    ];
    settings(
        variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec(),
    )
}

impl Place for Bucket {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.open("a/prefix"))
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        let key = format!("{}/a/prefix/{name}", self.bucket);
        self.moto.put(&key, bytes).unwrap();
    }
}

#[test]
fn an_object_store_keeps_the_contract() {
    if Bucket::new().is_some() {
        contract::check(&|| Bucket::new().unwrap());
    }
}

/// A local file of many parts, or of one.
struct Local {
    folder: tempfile::TempDir,
    size: u64,
}

impl Local {
    fn new(size: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..size).map(|byte| (byte % 249) as u8).collect();
        std::fs::write(folder.path().join("source"), bytes).unwrap();
        Self { folder, size }
    }

    fn put(
        &self,
        store: &dyn Store,
        condition: &Condition,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        let upload = Upload {
            name: "000000.tar",
            path: &self.folder.path().join("source"),
            size: self.size,
            md5: None,
            condition,
            proof: Proof::Size,
        };
        store.put(&upload, observer)
    }
}

const MIB: u64 = 1 << 20;

#[test]
fn files_of_many_parts_keep_conditions() {
    let Some(bucket) = Bucket::new() else { return };
    let store = bucket.open("");
    let (one, other) = (Local::new(20 * MIB + 1), Local::new(17 * MIB));
    let refused = |local: &Local, condition: &Condition| {
        let error = local.put(&store, condition, &Silent).unwrap_err();
        assert!(matches!(error.cause, StoreCause::Exists), "{error}");
    };
    let first = one.put(&store, &Condition::New, &Silent).unwrap();
    assert_eq!(first.proof, Proof::HashedInTransfer);
    refused(&other, &Condition::New);
    let known = Condition::Unchanged(first.version.unwrap());
    let second = other.put(&store, &known, &Silent).unwrap();
    refused(&one, &known);
    assert_eq!(
        store.stat("000000.tar").unwrap().unwrap().version,
        second.version
    );
    let read_back = Upload {
        name: "000000.tar",
        path: &other.folder.path().join("source"),
        size: other.size,
        md5: None,
        condition: &Condition::Always,
        proof: Proof::ReadBack,
    };
    assert_eq!(
        store.verify(&read_back, &Silent).unwrap().proof,
        Proof::ReadBack
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
fn parts_of_an_upload_that_failed_are_given_up() {
    let Some(bucket) = Bucket::new() else { return };
    let store = bucket.open("");
    let local = Local::new(120 * MIB);
    let observer = AfterBytes(AtomicU64::new(0));
    let error = local
        .put(&store, &Condition::Always, &observer)
        .unwrap_err();
    assert!(matches!(error.cause, StoreCause::Interrupted), "{error}");
    let uploads = format!("/{}?uploads", bucket.bucket);
    let uploads = bucket.moto.send("GET", &uploads, b"").unwrap();
    let uploads = String::from_utf8(uploads).unwrap();
    assert!(uploads.contains("ListMultipartUploads"), "{uploads}");
    assert!(!uploads.contains("<UploadId>"), "{uploads}");
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn only_files_of_the_prefix_itself_are_listed() {
    let Some(bucket) = Bucket::new() else { return };
    for key in [
        "one",
        "folder/",
        "folder/two",
        "folder/deeper/three",
        "folderol",
    ] {
        bucket
            .moto
            .put(&format!("{}/{key}", bucket.bucket), b"bytes")
            .unwrap();
    }
    let names = |prefix: &str| {
        let files = bucket.open(prefix).list().unwrap();
        Vec::from_iter(files.into_iter().map(|file| file.name))
    };
    assert_eq!(names("folder"), ["two"]);
    assert_eq!(names(""), ["folderol", "one"]);
    assert_eq!(names("nothing/here"), Vec::<String>::new());
}

#[test]
fn a_missing_bucket_is_no_place() {
    let Some(bucket) = Bucket::new() else { return };
    let store = S3Store::new("no-such-bucket", "", &settings(bucket.moto.variables())).unwrap();
    let (small, large) = (Local::new(5), Local::new(9 * MIB));
    for error in [
        store.prepare().unwrap_err(),
        store.list().unwrap_err(),
        store.stat("index.db").unwrap_err(),
        small.put(&store, &Condition::Always, &Silent).unwrap_err(),
        large.put(&store, &Condition::New, &Silent).unwrap_err(),
    ] {
        assert!(matches!(error.cause, StoreCause::NoPlace), "{error}");
    }
}

#[test]
fn wrong_credentials_are_refused() {
    let Some(moto) = Moto::start(true).unwrap() else {
        stook_testkit::skip!("moto is not installed");
        return;
    };
    let store = S3Store::new("bucket", "", &settings(moto.variables())).unwrap();
    let local = Local::new(5);
    for error in [
        store.prepare().unwrap_err(),
        store.stat("index.db").unwrap_err(),
        local.put(&store, &Condition::Always, &Silent).unwrap_err(),
    ] {
        assert!(matches!(error.cause, StoreCause::Denied), "{error}");
    }
    let without = settings(vec![("AWS_REGION".to_owned(), "us-east-1".to_owned())]);
    let error = S3Store::new("bucket", "", &without).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot open `s3://bucket`: not logged in"
    );
    assert_eq!(error.advice(), Advice::Login);
}

#[test]
fn refusals_have_causes() {
    for (status, code, expected, advice) in [
        (
            "400 Bad Request",
            "ExpiredToken",
            "not logged in",
            Advice::Login,
        ),
        (
            "507 Insufficient Storage",
            "",
            "the store is full",
            Advice::GiveUp,
        ),
        (
            "503 Slow Down",
            "SlowDown",
            "the object store says: 503 SlowDown: Why.",
            Advice::Retry,
        ),
    ] {
        let body = format!("<Error><Code>{code}</Code><Message>Why.</Message></Error>");
        let server = Canned::start(move |request, stream| {
            let len = body.len();
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {len}\r\nConnection: close\r\n\r\n");
            let body = if request.method == "HEAD" { "" } else { &*body };
            let _ = stream.write_all(format!("{head}{body}").as_bytes());
        });
        let store = S3Store::new("bucket", "", &settings_for(&server.url())).unwrap();
        for error in [
            store.list().unwrap_err(),
            store.stat("index.db").unwrap_err(),
        ] {
            assert_eq!(
                (error.cause.to_string(), error.advice()),
                (expected.to_owned(), advice)
            );
        }
    }
}

#[test]
fn a_server_that_is_gone_is_worth_another_try() {
    let Some(mut moto) = Moto::start(false).unwrap() else {
        stook_testkit::skip!("moto is not installed");
        return;
    };
    let bucket = moto.new_bucket().unwrap();
    let store = S3Store::new(&bucket, "", &settings(moto.variables())).unwrap();
    store.prepare().unwrap();
    moto.kill();
    let local = Local::new(9 * MIB);
    let error = local.put(&store, &Condition::New, &Silent).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot put `000000.tar` to `s3://{bucket}`: connection refused")
    );
    assert_eq!(error.advice(), Advice::Retry);
}

#[test]
fn a_silent_server_ends_in_time() {
    let silent = Canned::start(|_, _| std::thread::sleep(Duration::from_secs(30)));
    let mut settings = settings_for(&silent.url());
    settings.network.idle_timeout = Duration::from_secs(1);
    let store = S3Store::new("bucket", "", &settings).unwrap();
    let error = store.list().unwrap_err();
    assert!(matches!(error.cause, StoreCause::Timeout(1)), "{error}");
}
