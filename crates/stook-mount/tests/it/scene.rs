//! A tree, an archive of it, and a mount of that.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use stook_archive::{
    Archive, Catalogue, CatalogueOptions, OpenOptions, Silent, WriteOptions, create,
};
use stook_mount::{Event, Log, MountError, MountOptions, Mounted, Shown, Unmount};
use stook_sys::SysError;
use stook_testkit::{TempDir, TempTree, Tree};

/// A tree and its archive.
pub(crate) struct Scene {
    tree: TempTree,
}

impl Scene {
    pub(crate) fn archived(tree: &Tree) -> Self {
        Self::archived_with(tree, &WriteOptions::default())
    }

    pub(crate) fn archived_with(tree: &Tree, options: &WriteOptions) -> Self {
        let tree = TempTree::new(tree).unwrap();
        let scene = Self { tree };
        let report = create(scene.source(), &scene.archive(), options, &Silent).unwrap();
        assert_eq!(report.failed, 0);
        scene
    }

    pub(crate) fn source(&self) -> &Path {
        self.tree.path()
    }

    pub(crate) fn archive(&self) -> PathBuf {
        self.tree.beside("archive")
    }

    pub(crate) fn volume(&self) -> PathBuf {
        self.archive().join("000000.tar")
    }

    pub(crate) fn mount(&self) -> Mount {
        Mount::of(&self.archive())
    }
}

pub(crate) fn catalogue(archive: &Path) -> Catalogue {
    let mut archive = Archive::open(archive, &OpenOptions::default()).unwrap();
    let options = CatalogueOptions::default();
    archive.catalogue(&options, &Silent).unwrap()
}

/// What a mount has said.
#[derive(Debug, Default)]
pub(crate) struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn log(&self, event: &Event) {
        self.0.lock().unwrap().push(event.to_string());
    }
}

/// A mounted archive, until it is dropped.
pub(crate) struct Mount {
    point: TempDir,
    mounted: Option<Mounted>,
    lines: Arc<Lines>,
}

impl Mount {
    pub(crate) fn of(archive: &Path) -> Self {
        Self::with(archive, &MountOptions::default())
    }

    pub(crate) fn with(archive: &Path, options: &MountOptions) -> Self {
        Self::at(TempDir::new().unwrap(), catalogue(archive).into(), options)
    }

    pub(crate) fn at(point: TempDir, shown: Shown, options: &MountOptions) -> Self {
        let lines = Arc::new(Lines::default());
        let log = Arc::clone(&lines) as Arc<dyn Log>;
        let mounted = Mounted::mount(shown, point.path(), options, &log).unwrap();
        Self {
            point,
            mounted: Some(mounted),
            lines,
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.point.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.point.join(name)
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.0.lock().unwrap().clone()
    }

    pub(crate) fn mounted(&self) -> &Mounted {
        self.mounted.as_ref().unwrap()
    }

    /// Waits for the end of the server of a mount that is detached.
    pub(crate) fn wait_for_end(&mut self) {
        self.mounted.take().unwrap().wait().unwrap();
    }

    /// Unmounts, and waits for the end of the server.
    pub(crate) fn unmount(mut self) {
        let mounted = self.mounted.take().unwrap();
        mounted.unmounter().unmount(Unmount::Unused).unwrap();
        mounted.wait().unwrap();
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if let Some(mounted) = self.mounted.take() {
            // A test that has failed says so itself.
            let _ = mounted.unmounter().unmount(Unmount::Detach);
        }
    }
}

/// There is no `/dev/fuse`, or no `fusermount3`, or they are not allowed.
fn is_missing(error: &SysError) -> bool {
    let kind = error.source.kind();
    matches!(kind, ErrorKind::NotFound | ErrorKind::PermissionDenied)
}

/// Returns true if archives can be mounted here; says so if not.
pub(crate) fn has_fuse() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        let scene = Scene::archived(&Tree::new());
        let point = TempDir::new().unwrap();
        let log: Arc<dyn Log> = Arc::new(Lines::default());
        let options = MountOptions::default();
        match Mounted::mount(
            catalogue(&scene.archive()).into(),
            point.path(),
            &options,
            &log,
        ) {
            Ok(mounted) => {
                mounted.unmounter().unmount(Unmount::Unused).unwrap();
                mounted.wait().unwrap();
                None
            }
            Err(MountError::Sys(error)) if is_missing(&error) => Some(error.to_string()),
            Err(error) => panic!("{error}"),
        }
    });
    if let Some(reason) = reason {
        stook_testkit::skip!("no FUSE here: {reason}");
    }
    reason.is_none()
}
