//! Operations on volumes that are not local files: slow, failing, short, and changing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use stook_archive::{
    Archive, AsOf, CheckOptions, ExtractOptions, LocalFolder, OpenOptions, ReadAt, Silent,
    VolumeBytes, VolumeStore, VolumeVersion, cat, check, extract,
};
use stook_sys::SysError;
use stook_testkit::{Snapshot, Tree, tree};

use crate::recorder::Recorder;
use crate::scene::{Scene, all_facts};

#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// Each call returns at most this many bytes.
    Short(usize),
    /// Nothing can be read.
    Unreadable,
    /// From the third call on, bytes are others than before.
    Changing,
}

/// The volumes of a local folder, each call after 50 ms.
#[derive(Debug)]
struct Far {
    folder: LocalFolder,
    fault: Fault,
    calls: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct FarVolume {
    volume: Arc<dyn VolumeBytes>,
    fault: Fault,
    calls: Arc<AtomicUsize>,
}

impl VolumeStore for Far {
    fn open(&self, name: &str) -> Result<Arc<dyn VolumeBytes>, SysError> {
        Ok(Arc::new(FarVolume {
            volume: self.folder.open(name)?,
            fault: self.fault,
            calls: Arc::clone(&self.calls),
        }))
    }
}

impl ReadAt for FarVolume {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let calls = self.calls.fetch_add(1, Relaxed) + 1;
        std::thread::sleep(Duration::from_millis(50));
        match self.fault {
            Fault::None => self.volume.read_at(buffer, offset),
            Fault::Short(most) => {
                let len = buffer.len().min(most);
                self.volume.read_at(&mut buffer[..len], offset)
            }
            Fault::Unreadable => Err(io::Error::from_raw_os_error(5)),
            Fault::Changing => {
                let count = self.volume.read_at(buffer, offset)?;
                if calls > 2 {
                    buffer[..count].iter_mut().for_each(|byte| *byte ^= 1);
                }
                Ok(count)
            }
        }
    }
}

impl VolumeBytes for FarVolume {
    fn len(&self) -> io::Result<u64> {
        self.volume.len()
    }

    fn version(&self) -> io::Result<Option<VolumeVersion>> {
        self.volume.version()
    }
}

fn sample() -> Tree {
    let mut tree = tree! { "a" => file(b"first") };
    for number in 0..60 {
        tree.insert(
            format!("d/{number}"),
            stook_testkit::file(vec![number; 3000]),
        );
    }
    tree
}

/// A scene, its archive opened far away, and the number of calls.
fn far(fault: Fault) -> (Scene, Archive, Arc<AtomicUsize>) {
    let scene = Scene::archived(&sample());
    let calls = Arc::new(AtomicUsize::new(0));
    let store = Far {
        folder: LocalFolder::new(scene.archive()),
        fault,
        calls: Arc::clone(&calls),
    };
    let options = OpenOptions {
        store: Some(Arc::new(store)),
        ..OpenOptions::default()
    };
    let archive = Archive::open(&scene.archive(), &options).unwrap();
    (scene, archive, calls)
}

#[test]
fn an_extraction_from_far_away_reads_each_batch_at_once() {
    let (scene, mut archive, calls) = far(Fault::None);
    let (into, recorder) = (scene.beside("extracted"), Recorder::new());
    let options = ExtractOptions {
        same_permissions: true,
        ..ExtractOptions::default()
    };
    let report = extract(&mut archive, &into, &options, &recorder).unwrap();
    assert_eq!((report.members, report.failed), (62, 0));
    let extracted = Snapshot::take(&into).unwrap();
    assert_eq!(
        scene.snapshot().difference(&extracted, &all_facts()),
        [""; 0]
    );
    // 62 members are one batch; the end of the volume may need a second call.
    assert!(calls.load(Relaxed) <= 2, "{calls:?}");
}

#[test]
fn short_answers_do_not_show() {
    let (_scene, mut archive, _) = far(Fault::Short(20_000));
    let recorder = Recorder::new();
    let report = check(&mut archive, &CheckOptions::default(), &recorder).unwrap();
    assert_eq!((report.members, report.damages), (62, 0));
}

#[test]
fn a_volume_that_cannot_be_read_fails_each_member_with_its_error_number() {
    let (scene, mut archive, _) = far(Fault::Unreadable);
    let recorder = Recorder::new();
    let into = scene.beside("extracted");
    let report = extract(&mut archive, &into, &ExtractOptions::default(), &recorder).unwrap();
    assert_eq!((report.written, report.failed), (0, 62));
    let error = cat(&archive, b"a", AsOf::Now, &mut Vec::new(), &Silent).unwrap_err();
    assert!(error.is_damage(), "{error}");
}

#[test]
fn a_volume_that_changes_under_the_reader_is_damage() {
    let (_scene, archive, _) = far(Fault::Changing);
    let mut bytes = Vec::new();
    cat(&archive, b"a", AsOf::Now, &mut bytes, &Silent).unwrap();
    assert_eq!(bytes, b"first");
    let row = archive.find(b"d/7", AsOf::Now).unwrap().row.unwrap();
    assert!(archive.reader(&row).is_err());
    assert!(cat(&archive, b"a", AsOf::Now, &mut Vec::new(), &Silent).is_err());
}
