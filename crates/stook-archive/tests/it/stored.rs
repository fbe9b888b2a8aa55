//! Indices of archives in stores: fetched once for each version, of one state, and kept for when no store is asked. Volumes are
//! read through the cache of `stook-mount`, which has tests of its own.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use stook_archive::{
    Archive, ArchiveError, AsOf, ListOptions, LocalFolder, OpenOptions, Silent, StoredPlace,
    WriteOptions, cat, create, list,
};
use stook_store::{DirectoryStore, HttpStore, Settings, Store};
use stook_testkit::servers::Nginx;
use stook_testkit::{Random, Tree, tree};

use crate::scene::Scene;

const MIB: usize = 1 << 20;

fn content(seed: u64, len: usize) -> Vec<u8> {
    Random::new(seed).bytes(len)
}

fn sample() -> Tree {
    let mut tree = tree! { "empty" => file(b"") };
    for number in 0..300 {
        let bytes = content(number, 500 + 97 * usize::try_from(number).unwrap());
        tree.insert(format!("small/{number}"), stook_testkit::file(bytes));
    }
    tree.insert("large", stook_testkit::file(content(1000, 13 * MIB + 7)));
    tree
}

/// An archive of several volumes.
fn archived(tree: &Tree) -> Scene {
    let scene = Scene::new(tree);
    let options = WriteOptions {
        volume_bytes: Some(6 << 20),
        ..WriteOptions::default()
    };
    create(scene.source(), &scene.archive(), &options, &Silent).unwrap();
    scene
}

fn serve(scene: &Scene) -> Option<(Nginx, Arc<dyn Store>)> {
    let Some(nginx) = Nginx::start("").unwrap() else {
        stook_testkit::skip!("nginx is not installed");
        return None;
    };
    for entry in std::fs::read_dir(scene.archive()).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), nginx.root().join(entry.file_name())).unwrap();
    }
    let store = HttpStore::new(&nginx.url(), &Settings::default()).unwrap();
    Some((nginx, Arc::new(store)))
}

fn rows(archive: &mut Archive) -> Vec<String> {
    let mut rows = Vec::new();
    let options = ListOptions {
        patterns: Vec::new(),
        as_of: AsOf::Now,
        all_versions: true,
    };
    list(archive, &options, &Silent, |row| {
        rows.push(format!("{row:?}"));
        ControlFlow::Continue(())
    })
    .unwrap();
    rows
}

#[test]
fn the_index_is_fetched_once_for_each_version() {
    let scene = archived(&sample());
    let Some((nginx, store)) = serve(&scene) else {
        return;
    };
    let cache = scene.beside("cache");
    let size = std::fs::metadata(scene.archive().join("index.db"))
        .unwrap()
        .len();
    let stores = [store];
    let fetched = || fetch(&stores, &cache, false).unwrap().1;
    assert_eq!((fetched(), fetched()), (size, 0));
    let (mut old, _) = fetch(&stores, &cache, false).unwrap();
    let before = rows(&mut old);
    // Another version, and the one of before is still open.
    std::fs::write(scene.path("another"), b"file").unwrap();
    scene.update();
    let index = scene.archive().join("index.db");
    std::fs::copy(&index, nginx.root().join("new")).unwrap();
    // nginx tells versions apart by size and second.
    let file = std::fs::File::options()
        .write(true)
        .open(nginx.root().join("new"))
        .unwrap();
    file.set_modified(std::time::SystemTime::now() + std::time::Duration::from_secs(5))
        .unwrap();
    std::fs::rename(nginx.root().join("new"), nginx.root().join("index.db")).unwrap();
    let size = std::fs::metadata(&index).unwrap().len();
    assert_eq!((fetched(), fetched()), (size, 0));
    assert_eq!(rows(&mut old), before);
    let (mut new, _) = fetch(&stores, &cache, false).unwrap();
    assert_eq!(rows(&mut new).len(), before.len() + 1);
    let copies = std::fs::read_dir(&cache).unwrap();
    assert_eq!(copies.count(), 1);
}

fn fetch(
    stores: &[Arc<dyn Store>],
    cache: &Path,
    is_offline: bool,
) -> Result<(Archive, u64), ArchiveError> {
    let place = StoredPlace {
        stores,
        cache,
        is_offline,
    };
    Archive::open_fetched(&place, &OpenOptions::default(), &stook_store::Silent)
}

#[test]
fn an_index_that_is_being_written_to_is_refused() {
    let scene = archived(&sample());
    let cache = scene.beside("cache");
    let store: Arc<dyn Store> = Arc::new(DirectoryStore::new(scene.archive()));
    let journal = scene.archive().join("index.db-journal");
    std::fs::write(&journal, b"something").unwrap();
    let error = fetch(std::slice::from_ref(&store), &cache, false).unwrap_err();
    let expected = format!(
        "cannot open `{}`: its index is being written to, there is an index.db-journal",
        scene.archive().display()
    );
    assert_eq!(error.to_string(), expected);
    assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 0);
    // Some programs leave an empty one.
    std::fs::write(&journal, b"").unwrap();
    let size = std::fs::metadata(scene.archive().join("index.db"))
        .unwrap()
        .len();
    assert_eq!(
        fetch(std::slice::from_ref(&store), &cache, false)
            .unwrap()
            .1,
        size
    );
}

#[test]
fn a_damaged_index_is_fetched_twice_and_taken_as_it_is() {
    let scene = archived(&sample());
    let Some((nginx, store)) = serve(&scene) else {
        return;
    };
    let path = nginx.root().join("index.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let size = bytes.len();
    // The header of a page in the middle.
    let page = size / 4096 / 2 * 4096;
    bytes[page..page + 64].fill(0xee);
    std::fs::write(&path, bytes).unwrap();
    let (_archive, fetched) = fetch(&[store], &scene.beside("cache"), false).unwrap();
    assert_eq!(fetched, 2 * size as u64);
}

#[test]
fn the_last_copy_serves_while_stores_are_not_asked() {
    let scene = archived(&sample());
    let cache = scene.beside("cache");
    let Some((mut nginx, store)) = serve(&scene) else {
        return;
    };
    let stores = [store];
    let error = fetch(&stores, &cache, true).unwrap_err();
    assert!(matches!(error, ArchiveError::NotFetched { .. }), "{error}");
    let (mut online, bytes) = fetch(&stores, &cache, false).unwrap();
    assert!(bytes > 0);
    nginx.kill();
    let (mut offline, bytes) = fetch(&stores, &cache, true).unwrap();
    assert_eq!(bytes, 0);
    assert_eq!(rows(&mut offline), rows(&mut online));
    // A mirror that answers does as well, and its volumes can be read from there.
    let folder: Arc<dyn Store> = Arc::new(DirectoryStore::new(scene.archive()));
    let nothing: Arc<dyn Store> = Arc::new(DirectoryStore::new(scene.beside("nothing")));
    let stores = [nothing, folder];
    let (mut mirrored, bytes) = fetch(&stores, &cache, false).unwrap();
    assert!(bytes > 0);
    mirrored.read_volumes_from(Arc::new(LocalFolder::new(scene.archive())));
    let mut content = Vec::new();
    cat(&mirrored, b"small/17", AsOf::Now, &mut content, &Silent).unwrap();
    assert!(content == std::fs::read(scene.path("small/17")).unwrap());
}

#[test]
fn nothing_there_is_no_archive() {
    let scene = archived(&sample());
    let Some((nginx, store)) = serve(&scene) else {
        return;
    };
    let cache = scene.beside("cache");
    let stores = [store];
    let (archive, _) = fetch(&stores, &cache, false).unwrap();
    let missing = cat(&archive, b"nothing", AsOf::Now, &mut Vec::new(), &Silent).unwrap_err();
    assert!(missing.to_string().contains(&nginx.url()), "{missing}");
    std::fs::remove_file(nginx.root().join("index.db")).unwrap();
    let error = fetch(&stores, &cache, false).unwrap_err();
    assert!(
        matches!(error, ArchiveError::NotAnArchive { .. }),
        "{error}"
    );
}
