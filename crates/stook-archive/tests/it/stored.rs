//! Archives in stores: what is read from a web server and an object store is what the local archive has, and how much of it
//! moves is counted at the server.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use stook_archive::{
    Archive, ArchiveError, AsOf, CheckOptions, ExtractOptions, ListOptions, LocalFolder,
    OpenOptions, Silent, StoredPlace, StoredVolumes, WriteOptions, cat, check, create, extract,
    list,
};
use stook_store::{Condition, DirectoryStore, HttpStore, Proof, S3Store, Settings, Store, Upload};
use stook_testkit::servers::{Nginx, start_moto};
use stook_testkit::{Random, Snapshot, Tree, tree};

use crate::scene::{Scene, all_facts};

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

fn open(store: &Arc<dyn Store>, cache: &Path) -> (Archive, Arc<StoredVolumes>) {
    let options = OpenOptions::default();
    Archive::open_stored(store, cache, &options, &stook_store::Silent).unwrap()
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

/// An object store that has the archive.
fn bucket(scene: &Scene) -> Option<Arc<dyn Store>> {
    let Some(moto) = start_moto() else {
        stook_testkit::skip!("moto is not installed");
        return None;
    };
    let mut settings = Settings::default();
    settings.s3.variables = moto.variables();
    let store = S3Store::new(&moto.new_bucket().unwrap(), "run", &settings).unwrap();
    for entry in std::fs::read_dir(scene.archive()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        let upload = Upload {
            name: name.to_str().unwrap(),
            path: &entry.path(),
            size: entry.metadata().unwrap().len(),
            md5: None,
            condition: &Condition::New,
            proof: Proof::Size,
        };
        store.put(&upload, &stook_store::Silent).unwrap();
    }
    Some(Arc::new(store))
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

/// Every operation that reads gives the same as for the local archive.
fn reads_alike(scene: &Scene, store: &Arc<dyn Store>) {
    let cache = scene.beside("cache");
    let (mut archive, _) = open(store, &cache);
    let mut local = Archive::open(&scene.archive(), &OpenOptions::default()).unwrap();
    assert_eq!(rows(&mut archive), rows(&mut local));
    for name in ["empty", "small/17", "large"] {
        let mut bytes = Vec::new();
        cat(&archive, name.as_bytes(), AsOf::Now, &mut bytes, &Silent).unwrap();
        assert!(bytes == std::fs::read(scene.path(name)).unwrap(), "{name}");
    }
    let options = CheckOptions::default();
    let found = check(&mut archive, &options, &Silent).unwrap();
    let expected = check(&mut local, &options, &Silent).unwrap();
    assert_eq!(
        (
            found.members,
            found.bytes,
            found.volumes,
            found.damages,
            found.unverified
        ),
        (expected.members, expected.bytes, expected.volumes, 0, 0)
    );
    let options = ExtractOptions {
        same_permissions: true,
        ..ExtractOptions::default()
    };
    let into = scene.beside("extracted");
    let report = extract(&mut archive, &into, &options, &Silent).unwrap();
    assert_eq!(report.failed, 0);
    let extracted = Snapshot::take(&into).unwrap();
    let differences = scene.snapshot().difference(&extracted, &all_facts());
    assert_eq!(differences, [""; 0]);
}

#[test]
fn an_archive_on_a_web_server_reads_like_a_local_one() {
    let scene = archived(&sample());
    if let Some((_nginx, store)) = serve(&scene) {
        reads_alike(&scene, &store);
    }
}

#[test]
fn an_archive_in_an_object_store_reads_like_a_local_one() {
    let scene = archived(&sample());
    if let Some(store) = bucket(&scene) {
        reads_alike(&scene, &store);
    }
}

#[test]
fn an_archive_in_a_directory_reads_like_a_local_one() {
    let scene = archived(&sample());
    let store: Arc<dyn Store> = Arc::new(DirectoryStore::new(scene.archive()));
    reads_alike(&scene, &store);
}

/// Bytes of volumes that a web server sent.
fn sent(nginx: &Nginx) -> u64 {
    let requests = nginx.requests().unwrap();
    let volumes = requests
        .iter()
        .filter(|request| request.3.ends_with(".tar"));
    volumes.map(|request| request.2).sum()
}

#[test]
fn one_file_of_a_large_volume_moves_little_else() {
    let mut tree = tree! { "d" => dir() };
    for number in 0..40u64 {
        tree.insert(
            format!("d/{number:02}"),
            stook_testkit::file(content(number, 3 * MIB)),
        );
        tree.insert(
            format!("d/{number:02}.txt"),
            stook_testkit::file(b"few bytes"),
        );
    }
    let scene = Scene::archived(&tree);
    let Some((nginx, store)) = serve(&scene) else {
        return;
    };
    let cache = scene.beside("cache");
    for (name, size) in [("d/20", 3 * MIB), ("d/31.txt", 9)] {
        let (archive, volumes) = open(&store, &cache);
        let before = sent(&nginx);
        let mut bytes = Vec::new();
        cat(&archive, name.as_bytes(), AsOf::Now, &mut bytes, &Silent).unwrap();
        assert_eq!(bytes.len(), size);
        // What was asked for and not read any more is sent as well, at most.
        drop(archive);
        let moved = volumes.fetched().volumes;
        assert!(moved < (size + MIB) as u64, "{name}: {moved}");
        let at_server = sent(&nginx) - before;
        assert!(at_server < (size + MIB) as u64, "{name}: {at_server}");
    }
    let (mut archive, volumes) = open(&store, &cache);
    let options = ExtractOptions {
        patterns: vec![stook_tree::Pattern::new(b"d/07")],
        ..ExtractOptions::default()
    };
    let report = extract(&mut archive, &scene.beside("one"), &options, &Silent).unwrap();
    assert_eq!((report.members, report.failed), (1, 0));
    let moved = volumes.fetched().volumes;
    assert!(moved < 4 * MIB as u64, "{moved}");
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
    let fetched = || open(&store, &cache).1.fetched().index;
    assert_eq!((fetched(), fetched()), (size, 0));
    let (mut old, _) = open(&store, &cache);
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
    let (mut new, _) = open(&store, &cache);
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
fn nothing_there_is_no_archive_and_a_missing_volume_is_named() {
    let scene = archived(&sample());
    let Some((nginx, store)) = serve(&scene) else {
        return;
    };
    let cache = scene.beside("cache");
    let (archive, _) = open(&store, &cache);
    std::fs::remove_file(nginx.root().join("000000.tar")).unwrap();
    let error = cat(&archive, b"empty", AsOf::Now, &mut Vec::new(), &Silent).unwrap_err();
    let url = nginx.url();
    assert_eq!(
        error.to_string(),
        format!("cannot open `{url}/000000.tar`: no such file or directory")
    );
    let missing = cat(&archive, b"nothing", AsOf::Now, &mut Vec::new(), &Silent).unwrap_err();
    assert!(missing.to_string().contains(&url), "{missing}");
    std::fs::remove_file(nginx.root().join("index.db")).unwrap();
    let options = OpenOptions::default();
    let error = Archive::open_stored(&store, &cache, &options, &stook_store::Silent).unwrap_err();
    assert!(
        matches!(error, ArchiveError::NotAnArchive { .. }),
        "{error}"
    );
}

#[test]
fn a_volume_that_is_replaced_meanwhile_is_noticed() {
    let scene = archived(&sample());
    let Some((nginx, store)) = serve(&scene) else {
        return;
    };
    let (archive, _) = open(&store, &scene.beside("cache"));
    let mut bytes = Vec::new();
    cat(&archive, b"small/17", AsOf::Now, &mut bytes, &Silent).unwrap();
    for entry in std::fs::read_dir(nginx.root()).unwrap() {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend([0; 512]);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    let row_of = |name: &str| {
        archive
            .find(name.as_bytes(), AsOf::Now)
            .unwrap()
            .row
            .unwrap()
    };
    let first = row_of("small/17");
    // One of the volume that is open, which was not fetched with the first.
    let names = (0..300).map(|number| format!("small/{number}"));
    let mut far = names.filter(|name| {
        let row = row_of(name);
        row.volume == first.volume && row.offset.abs_diff(first.offset) > MIB as u64
    });
    let name = far.next().unwrap();
    let error = cat(&archive, name.as_bytes(), AsOf::Now, &mut bytes, &Silent).unwrap_err();
    assert!(
        error.to_string().contains("has changed in the store"),
        "{error}"
    );
}
