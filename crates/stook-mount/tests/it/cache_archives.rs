//! Whole archives read through the cache give what the local ones give, wherever they lie.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use stook_archive::{
    Archive, AsOf, CheckOptions, ExtractOptions, OpenOptions, Silent, StoredPlace, WriteOptions,
    cat, check, create, extract,
};
use stook_mount::{
    BLOCK_BYTES, CacheOptions, CacheStats, CachedVolumes, VolumeIdentity, VolumeRange,
};
use stook_store::{Condition, Proof, S3Store, Settings, Store, Upload};
use stook_testkit::servers::{Nginx, start_moto};
use stook_testkit::{Compare, Random, Snapshot, TempTree, Tree, tree};

use crate::cache_scene::{directory, http, options};

struct Scene {
    tree: TempTree,
}

impl Scene {
    /// A tree, and an archive of several volumes.
    fn new() -> Self {
        let mut tree = tree! { "empty" => file(b"") };
        for number in 0..300 {
            let bytes = Random::new(number).bytes(500 + 97 * usize::try_from(number).unwrap());
            tree.insert(format!("small/{number}"), stook_testkit::file(bytes));
        }
        let large = Random::new(1000).bytes(13_000_007);
        tree.insert("large", stook_testkit::file(large));
        Self::of(&tree, Some(6 << 20))
    }

    fn of(tree: &Tree, volume_bytes: Option<u64>) -> Self {
        let scene = Self {
            tree: TempTree::new(tree).unwrap(),
        };
        let options = WriteOptions {
            volume_bytes,
            ..WriteOptions::default()
        };
        create(scene.tree.path(), &scene.archive(), &options, &Silent).unwrap();
        scene
    }

    fn archive(&self) -> PathBuf {
        self.tree.beside("archive")
    }

    fn files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.archive()).unwrap();
        files.map(|file| file.unwrap().path()).collect()
    }

    fn copy_to(&self, folder: &Path) {
        for file in self.files() {
            std::fs::copy(&file, folder.join(file.file_name().unwrap())).unwrap();
        }
    }

    /// Returns the archive, as a command opens it.
    fn open_for_a_command(&self, stores: &[Arc<dyn Store>]) -> (Archive, Arc<CachedVolumes>) {
        self.open_with(stores, &CacheOptions::for_commands())
    }

    /// Returns the archive, read through a cache with blocks on disk.
    fn open(&self, stores: &[Arc<dyn Store>], is_offline: bool) -> (Archive, Arc<CachedVolumes>) {
        let options = CacheOptions {
            directory: Some(self.tree.beside("cache")),
            disk_bytes: 256 << 20,
            memory_bytes: 8 << 20,
            read_ahead_bytes: 4 << 20,
            fetchers: 8,
            is_offline,
            ..options()
        };
        self.open_with(stores, &options)
    }

    fn open_with(
        &self,
        stores: &[Arc<dyn Store>],
        options: &CacheOptions,
    ) -> (Archive, Arc<CachedVolumes>) {
        let indices = self.tree.beside("indices");
        let place = StoredPlace {
            stores,
            cache: &indices,
            is_offline: options.is_offline,
        };
        let opened = Archive::open_fetched(&place, &OpenOptions::default(), &stook_store::Silent);
        let (mut archive, _) = opened.unwrap();
        let records = VolumeIdentity::of_archive(&archive).unwrap();
        assert!(records.iter().all(|record| record.md5.is_some()));
        let volumes = Arc::new(CachedVolumes::new(stores.to_vec(), records, options).unwrap());
        archive.read_volumes_from(Arc::clone(&volumes) as _);
        (archive, volumes)
    }

    /// Extracts everything through the cache, and compares it; returns what the cache did.
    fn extract(&self, stores: &[Arc<dyn Store>], is_offline: bool) -> CacheStats {
        let (mut archive, volumes) = self.open(stores, is_offline);
        let into = self.tree.beside("extracted");
        let options = ExtractOptions {
            same_permissions: true,
            ..ExtractOptions::default()
        };
        let report = extract(&mut archive, &into, &options, &Silent).unwrap();
        assert_eq!(report.failed, 0);
        let source = Snapshot::take(self.tree.path()).unwrap();
        let extracted = Snapshot::take(&into).unwrap();
        assert_eq!(source.difference(&extracted, &Compare::content()), [""; 0]);
        stook_testkit::remove_tree(&into).unwrap();
        volumes.stats()
    }

    fn reads_alike(&self, stores: &[Arc<dyn Store>]) {
        let cold = self.extract(stores, false);
        // Every block was fetched once, for all readers.
        let blocks = |record: &VolumeIdentity| record.size.unwrap().div_ceil(BLOCK_BYTES);
        let records = VolumeIdentity::of_archive(&self.open(stores, false).0).unwrap();
        let all: u64 = records.iter().map(blocks).sum();
        assert_eq!(cold.store_blocks, all, "{cold:?}");
        assert_eq!(cold.disk_writes, cold.store_blocks);
        assert_eq!((cold.failures, cold.not_written), (0, 0));
        let warm = self.extract(stores, false);
        assert_eq!((warm.store_bytes, warm.fetches), (0, 0));
        assert!(warm.disk_hits > 50, "{warm:?}");
        self.extract(stores, true);
        let (mut archive, _) = self.open(stores, false);
        let found = check(&mut archive, &CheckOptions::default(), &Silent).unwrap();
        assert_eq!(
            (found.damages, found.unverified, found.members),
            (0, 0, 303)
        );
    }
}

#[test]
fn an_archive_in_a_directory_reads_alike_cold_warm_and_offline() {
    let scene = Scene::new();
    scene.reads_alike(&[directory(scene.archive())]);
}

#[test]
fn an_archive_on_a_web_server_reads_alike_cold_warm_and_offline() {
    let scene = Scene::new();
    let Some(nginx) = Nginx::start("").unwrap() else {
        stook_testkit::skip!("nginx is not installed");
        return;
    };
    scene.copy_to(&nginx.root());
    scene.reads_alike(&[http(&nginx.url())]);
}

#[test]
fn an_archive_in_an_object_store_reads_alike_cold_warm_and_offline() {
    let scene = Scene::new();
    let Some(moto) = start_moto() else {
        stook_testkit::skip!("moto is not installed");
        return;
    };
    let mut settings = Settings::default();
    settings.s3.variables = moto.variables();
    let store = S3Store::new(&moto.new_bucket().unwrap(), "run", &settings).unwrap();
    for path in scene.files() {
        let upload = Upload {
            name: path.file_name().unwrap().to_str().unwrap(),
            path: &path,
            size: std::fs::metadata(&path).unwrap().len(),
            md5: None,
            condition: &Condition::New,
            proof: Proof::Size,
        };
        store.put(&upload, &stook_store::Silent).unwrap();
    }
    scene.reads_alike(&[Arc::new(store)]);
}

#[test]
fn mirrors_that_lack_volumes_help_each_other() {
    let scene = Scene::new();
    let folders = [scene.tree.beside("one"), scene.tree.beside("two")];
    for (number, folder) in folders.iter().enumerate() {
        std::fs::create_dir(folder).unwrap();
        scene.copy_to(folder);
        std::fs::remove_file(folder.join(format!("00000{number}.tar"))).unwrap();
    }
    let stores = folders.map(directory);
    let stats = scene.extract(&stores, false);
    assert!(stats.failovers > 0 && stats.failures == 0, "{stats:?}");
}

#[test]
fn what_is_prefetched_for_an_archive_is_read_offline() {
    let scene = Scene::new();
    let stores = [directory(scene.archive())];
    let (archive, volumes) = scene.open(&stores, false);
    let volume = |record: &VolumeIdentity| VolumeRange {
        volume: record.name.clone(),
        range: 0..record.size.unwrap(),
    };
    let records = VolumeIdentity::of_archive(&archive).unwrap();
    let ranges: Vec<VolumeRange> = records.iter().map(volume).collect();
    let report = volumes.prefetch(&ranges, &|| false);
    assert_eq!((report.fetched, report.failed), (report.blocks, 0));
    assert_eq!(report.not_kept, 0);
    drop((archive, volumes));
    let stats = scene.extract(&stores, true);
    assert_eq!((stats.fetches, stats.failures), (0, 0));
}

/// Returns the content of a member, and the bytes of volumes that moved for it, as the cache and the server count them.
fn moved_for(nginx: &Nginx, scene: &Scene, name: &str) -> (Vec<u8>, u64, u64) {
    let sent = || {
        let requests = nginx.requests().unwrap();
        let volumes = requests
            .iter()
            .filter(|request| request.3.ends_with(".tar"));
        volumes.map(|request| request.2).sum::<u64>()
    };
    let before = sent();
    let (archive, volumes) = scene.open_for_a_command(&[http(&nginx.url())]);
    let mut bytes = Vec::new();
    cat(&archive, name.as_bytes(), AsOf::Now, &mut bytes, &Silent).unwrap();
    // What was asked for and not read any more is sent as well, at most.
    let moved = volumes.stats().store_bytes;
    drop((archive, volumes));
    (bytes, moved, sent() - before)
}

#[test]
fn one_file_of_a_large_volume_moves_little_else() {
    let mut tree = tree! { "d" => dir() };
    for number in 0..40u64 {
        let large = Random::new(number).bytes(3 << 20);
        tree.insert(format!("d/{number:02}"), stook_testkit::file(large));
        tree.insert(
            format!("d/{number:02}.txt"),
            stook_testkit::file(b"few bytes"),
        );
    }
    let scene = Scene::of(&tree, None);
    let Some(nginx) = Nginx::start("").unwrap() else {
        stook_testkit::skip!("nginx is not installed");
        return;
    };
    scene.copy_to(&nginx.root());
    for (name, size) in [("d/20", 3 << 20), ("d/31.txt", 9)] {
        let (bytes, moved, at_server) = moved_for(&nginx, &scene, name);
        assert_eq!(bytes.len() as u64, size);
        let most = size + (1 << 20);
        assert!(
            moved < most && at_server < most,
            "{name}: {moved}, {at_server}"
        );
    }
}

#[test]
fn a_missing_volume_is_named() {
    let scene = Scene::new();
    let folder = scene.tree.beside("one");
    std::fs::create_dir(&folder).unwrap();
    scene.copy_to(&folder);
    let (archive, _) = scene.open_for_a_command(&[directory(&folder)]);
    std::fs::remove_file(folder.join("000000.tar")).unwrap();
    let error = cat(&archive, b"empty", AsOf::Now, &mut Vec::new(), &Silent).unwrap_err();
    let text = error.to_string();
    let expected = format!(
        "cannot read `000000.tar` in `{}`: no such file",
        folder.display()
    );
    assert!(text.contains(&expected), "{text}");
}
