//! A directory as a store.

use stook_store::{DirectoryStore, Store};
use tempfile::TempDir;

use crate::contract::{self, Place};

struct Directory(TempDir);

impl Place for Directory {
    fn store(&self) -> Box<dyn Store> {
        Box::new(DirectoryStore::new(self.0.path().join("a/store")))
    }

    fn overwrite(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.0.path().join("a/store").join(name), bytes).unwrap();
    }
}

#[test]
fn a_directory_keeps_the_contract() {
    contract::check(&|| Directory(tempfile::tempdir().unwrap()));
}
