//! The server of a mount killed with SIGKILL while processes read, again and again: blocks on the disk stay what they are.
//!
//! How many kills is `STOOK_CRASH_POINTS` (5), the seed of their times `STOOK_CRASH_SEED`.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use stook_testkit::servers::{LinkOptions, Nginx, SlowLink};
use stook_testkit::{Random, Tree, file, skip};

use crate::crash::seed;
use crate::mount::{Point, has_fuse, is_mounted};
use crate::place::{Place, wait_until};

const FILES: usize = 120;
const FILE_BYTES: usize = 100_000;
const CACHE_BYTES: u64 = 32 << 20;

/// What the mounts of a test share.
struct Scene {
    place: Place,
    url: String,
}

impl Scene {
    fn mount(&self, arguments: &[&str]) -> Child {
        let size = format!("--cache-size={CACHE_BYTES}");
        let common = [
            "mount",
            "--foreground",
            &self.url,
            "point",
            "--cache",
            "blocks",
            &size,
        ];
        let mut command = self.place.command(&[&common, arguments].concat());
        command.env("XDG_CACHE_HOME", self.place.path("cache"));
        let mut server = command.stdout(Stdio::null()).spawn().unwrap();
        assert!(wait_until(&mut server, || is_mounted(&self.place)));
        server
    }

    /// Kills a server after some time, while four processes read all files, in the order of a seed each.
    fn kill_under_load(&self, after: Duration, seed: u64) {
        let mut server = self.mount(&[]);
        let script = "ls point/d | shuf --random-source=\"$1\" | sed 's|^|point/d/|' | xargs -n 10 cat >/dev/null";
        let mut readers: Vec<Child> = (0..4)
            .map(|reader| {
                let source = self.place.path(&format!("order{reader}"));
                fs::write(&source, Random::new(seed + reader).bytes(4096)).unwrap();
                Command::new("sh")
                    .args(["-c", script, "sh"])
                    .arg(source)
                    .current_dir(self.place.root())
                    .stderr(Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        std::thread::sleep(after);
        server.kill().unwrap();
        server.wait().unwrap();
        for reader in &mut readers {
            reader.wait().unwrap();
        }
        self.detach();
    }

    fn detach(&self) {
        let freed = Command::new("umount").arg("-l").arg(self.point()).status();
        assert!(freed.unwrap().success());
    }

    fn point(&self) -> std::path::PathBuf {
        self.place.path("point")
    }

    /// Returns how many files the cache alone holds as a whole, each of which must be that of the tree; forgets them if all are there.
    fn cached(&self) -> usize {
        let mut server = self.mount(&["--offline"]);
        let found = (0..FILES)
            .filter(|number| {
                let read = fs::read(self.point().join(name(*number)));
                let is_there = read.is_ok();
                if let Ok(content) = read {
                    let source = fs::read(self.place.path("src").join(name(*number))).unwrap();
                    assert!(content == source, "{} is not what it was", name(*number));
                }
                is_there
            })
            .count();
        if found == FILES {
            self.place.stdout(&["talk", "point", "evict"]);
        }
        self.place.stdout(&["talk", "point", "quit"]);
        server.wait().unwrap();
        found
    }
}

fn name(number: usize) -> String {
    format!("d/f{number:03}")
}

/// Bytes on the disk of all that is below a folder.
fn disk_bytes(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let facts = entry.metadata().unwrap();
            let below = if facts.is_dir() {
                disk_bytes(&entry.path())
            } else {
                0
            };
            facts.blocks() * 512 + below
        })
        .sum()
}

/// No block is lost, none is wrong, none is left over, however often the server dies.
#[test]
fn a_server_is_killed_under_load_and_its_blocks_stay_intact() {
    if !has_fuse() {
        return;
    }
    let kills: u64 = std::env::var("STOOK_CRASH_POINTS").map_or(5, |text| text.parse().unwrap());
    println!("STOOK_CRASH_SEED={} STOOK_CRASH_POINTS={kills}", seed());
    let Some(nginx) = Nginx::start("").unwrap() else {
        return skip!("nginx is not installed");
    };
    let mut random = Random::new(seed());
    let mut tree = Tree::new();
    for number in 0..FILES {
        tree.insert(name(number), file(random.bytes(FILE_BYTES)));
    }
    let place = Place::with(&tree);
    place.stdout(&["create", "--zstd", "src", "archive"]);
    fs::create_dir(place.path("point")).unwrap();
    for name in place.names("archive") {
        fs::copy(place.path("archive").join(&name), nginx.root().join(&name)).unwrap();
    }
    // Slow enough that kills meet fetches.
    let options = LinkOptions {
        round_trip: Duration::from_millis(2),
        bytes_per_second: Some(30_000_000),
    };
    let link = SlowLink::start(nginx.port(), options).unwrap();
    let scene = Scene {
        url: link.url(),
        place,
    };
    let _point = Point(&scene.place);
    let (mut before, mut partial) = (0, 0);
    for kill in 0..kills {
        let after = Duration::from_millis(random.below(400));
        scene.kill_under_load(after, kill);
        let bytes = disk_bytes(&scene.place.path("blocks"));
        assert!(bytes <= CACHE_BYTES, "{bytes} bytes after kill {kill}");
        let found = scene.cached();
        assert!(
            found >= before,
            "kill {kill}: {found} files after {before} before it"
        );
        partial += usize::from(found < FILES);
        before = if found == FILES { 0 } else { found };
        println!("kill {kill} after {after:?}: {found} of {FILES} files in the cache");
    }
    // Otherwise the kills came too late to mean anything.
    assert!(partial > 0, "the cache was full at every kill");
    let mut server = scene.mount(&[]);
    scene.place.assert_same_tree("src", "point");
    scene.place.stdout(&["talk", "point", "quit"]);
    server.wait().unwrap();
}
