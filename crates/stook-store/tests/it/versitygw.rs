//! Object stores again, against a server that checks signatures and hashes, and keeps conditions: `make test-s3`.

use stook_store::{
    Condition, Proof, S3Store, Settings, Silent, Store, StoreCause, StoreError, Upload,
};
use stook_testkit::servers::Versitygw;

use crate::contract::{self, Place};

struct Bucket<'a> {
    server: &'a Versitygw,
    name: String,
}

fn start() -> Option<Versitygw> {
    let server = Versitygw::start().unwrap();
    if server.is_none() {
        stook_testkit::skip!("versitygw takes ten minutes to build: make test-s3 does");
    }
    server
}

impl Bucket<'_> {
    fn open(&self, change: impl Fn(&mut Vec<(String, String)>)) -> S3Store {
        let mut settings = Settings::default();
        settings.s3.variables = self.server.variables();
        change(&mut settings.s3.variables);
        S3Store::new(&self.name, "a/prefix", &settings).unwrap()
    }
}

fn put(
    store: &dyn Store,
    name: &str,
    bytes: &[u8],
    condition: &Condition,
) -> Result<Proof, StoreError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("source");
    std::fs::write(&path, bytes).unwrap();
    let upload = Upload {
        name,
        path: &path,
        size: bytes.len() as u64,
        md5: None,
        condition,
        proof: Proof::Size,
    };
    store.put(&upload, &Silent).map(|stored| stored.proof)
}

impl Place for Bucket<'_> {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.open(|_| {}))
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        put(&self.open(|_| {}), name, bytes, &Condition::Always).unwrap();
    }
}

#[test]
fn an_object_store_that_checks_keeps_the_contract() {
    let Some(server) = start() else { return };
    contract::check(&|| Bucket {
        server: &server,
        name: server.new_bucket().unwrap(),
    });
}

#[test]
fn conditions_hold_for_many_parts_and_signatures_are_checked() {
    let Some(server) = start() else { return };
    let name = server.new_bucket().unwrap();
    let bucket = Bucket {
        server: &server,
        name,
    };
    let store = bucket.open(|_| {});
    store.prepare().unwrap();
    assert!(store.abilities().is_conditional);
    let bytes = vec![7; 20 << 20];
    let proof = put(&store, "000000.tar", &bytes, &Condition::New).unwrap();
    assert_eq!(proof, Proof::HashedInTransfer);
    let error = put(&store, "000000.tar", &bytes, &Condition::New).unwrap_err();
    assert!(matches!(error.cause, StoreCause::Exists), "{error}");
    for wrong in ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"] {
        let stranger = bucket.open(|variables| {
            variables.retain(|(name, _)| name != wrong);
            variables.push((wrong.to_owned(), "wrong".to_owned()));
        });
        let error = stranger.list().unwrap_err();
        assert!(matches!(error.cause, StoreCause::Denied), "{error}");
    }
}
