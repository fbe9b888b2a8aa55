use std::path::{Path, PathBuf};

use stook_sys::{Forget, ResidencyQuery, Storage};
use stook_testkit::TempDir;

use super::*;
use crate::testing::alone_with_the_caches;

const FILES: usize = 12;
/// Other tests drop caches, too, and other programs as well: what must hold is tried so often.
const PATIENCE: usize = 20;

/// A folder with files on a disk, their paths, and its own; None where there is no disk.
fn files() -> Option<(TempDir, Vec<PathBuf>)> {
    let folder = TempDir::new().unwrap();
    if stook_sys::storage(folder.path()).unwrap() == Storage::Memory {
        stook_testkit::skip!("the temporary folder is in memory");
        return None;
    }
    for number in 0..FILES {
        std::fs::write(folder.join(format!("{number:02}")), vec![1; 50_000]).unwrap();
    }
    let paths = named_paths(&[folder.path().to_owned()], &()).unwrap();
    assert_eq!(paths.len(), FILES + 1, "the folder, too");
    Some((folder, paths))
}

fn read_all(paths: &[PathBuf]) {
    for path in paths.iter().filter(|path| path.is_file()) {
        std::fs::read(path).unwrap();
    }
}

fn after_a_run(paths: &[PathBuf], asking: ResidencyQuery) -> Inputs {
    Inputs::after_a_run(paths, Method::Fadvise, asking, || Ok(())).unwrap()
}

/// Tries until it holds.
fn holds(mut shares: impl FnMut() -> Shares, wanted: impl Fn(Shares) -> bool) {
    let mut found = shares();
    for _ in 0..PATIENCE {
        if wanted(found) {
            return;
        }
        found = shares();
    }
    panic!("{found:?}");
}

/// Whether the kernel can be asked so; older ones know nothing of `cachestat`.
fn can_ask(asking: ResidencyQuery, path: &Path) -> bool {
    let file = stook_sys::open_file(path).unwrap();
    stook_sys::resident_pages(&file, asking).is_ok()
}

/// What a run over these files leaves. Another program may drop caches meanwhile, or keep the kernel from it, so this
/// is tried more than once.
fn inputs(paths: &[PathBuf], method: Method, asking: ResidencyQuery) -> Inputs {
    for _ in 0..PATIENCE {
        read_all(paths);
        let inputs = Inputs::after_a_run(paths, method, asking, || Ok(())).unwrap();
        let has_names = inputs.ask().unwrap().names.is_some();
        if inputs.pages() == FILES as u64 * 13 && has_names {
            return inputs;
        }
    }
    panic!("the files never were in memory, or their names never left it");
}

/// Returns true if the kernel drops a name when it is asked directly. It passes over the names of a file system whose
/// super block somebody else holds.
fn names_can_be_dropped(folder: &Path) -> bool {
    let path = folder.join("probe");
    std::fs::write(&path, "x").unwrap();
    let is_dropped = (0..PATIENCE).any(|_| {
        for _ in 0..2 {
            std::fs::write("/proc/sys/vm/drop_caches", "2\n").unwrap();
        }
        stook_sys::is_name_cached(&path).is_ok_and(|cached| !cached)
    });
    std::fs::remove_file(&path).unwrap();
    is_dropped
}

#[test]
fn single_files_are_made_cold_and_hot_and_it_is_seen_both_ways() {
    let _alone = alone_with_the_caches();
    let Some((_folder, paths)) = files() else {
        return;
    };
    for asking in [ResidencyQuery::Cachestat, ResidencyQuery::Mincore] {
        if !can_ask(asking, &paths[1]) {
            stook_testkit::skip!("no {asking:?} here");
            continue;
        }
        let inputs = inputs(&paths, Method::Fadvise, asking);
        assert_eq!((inputs.count(), inputs.asking()), (FILES + 1, asking));
        let cold = inputs.forget(Method::Fadvise, Forget::Everything).unwrap();
        assert_eq!(cold.pages, Some(0.0));
        let hot = || {
            read_all(&paths);
            inputs.ask().unwrap()
        };
        holds(hot, |shares| {
            shares.pages == Some(1.0) && shares.names == Some(1.0)
        });
    }
}

#[test]
fn data_alone_and_everything_are_dropped_where_that_is_permitted() {
    let _alone = alone_with_the_caches();
    if Method::available() != Method::DropCaches {
        stook_testkit::skip!("this user may not drop the caches");
        return;
    }
    let Some((folder, paths)) = files() else {
        return;
    };
    if !names_can_be_dropped(folder.path()) {
        stook_testkit::skip!("the kernel keeps names when it is told to drop them");
        return;
    }
    let inputs = inputs(&paths, Method::DropCaches, ResidencyQuery::Cachestat);
    let warm = || {
        read_all(&paths);
        inputs.forget(Method::DropCaches, Forget::Data).unwrap()
    };
    holds(warm, |shares| {
        shares.pages == Some(0.0) && shares.names == Some(1.0)
    });
    let cold = || {
        inputs
            .forget(Method::DropCaches, Forget::Everything)
            .unwrap()
    };
    holds(cold, |shares| {
        shares.pages == Some(0.0) && shares.names <= Some(0.01)
    });
    // Asking has not brought anything back.
    holds(cold, |_| inputs.ask().unwrap().names <= Some(0.01));
}

#[test]
fn what_stays_in_memory_is_left_out() {
    let _alone = alone_with_the_caches();
    let own = stook_sys::absolute(Path::new("/proc/self/exe")).unwrap();
    let shared = Path::new("/dev/shm");
    let found = after_a_run(&[own], ResidencyQuery::Cachestat);
    assert_eq!((found.count(), found.left_out().in_use), (0, 1));
    if !matches!(stook_sys::storage(shared), Ok(Storage::Memory)) {
        stook_testkit::skip!("no file system in memory");
        return;
    }
    let file = shared.join(format!("stook-test-{}", std::process::id()));
    std::fs::write(&file, "x").unwrap();
    let found = after_a_run(std::slice::from_ref(&file), ResidencyQuery::Cachestat);
    std::fs::remove_file(&file).unwrap();
    assert_eq!((found.count(), found.left_out().in_memory), (0, 1));
    assert_eq!(found.changed(), Some(file.as_path()), "it is gone");
}

#[test]
fn files_of_others_are_not_reported_of() {
    let _alone = alone_with_the_caches();
    let Some((_folder, paths)) = files() else {
        return;
    };
    // Of root, or of the user of these tests: nobody has none of them.
    let library = std::fs::canonicalize("/bin/sh").unwrap();
    let ask = |asking| {
        let found = after_a_run(std::slice::from_ref(&library), asking);
        found.left_out().not_reported
    };
    let asked = stook_testkit::without_privileges(|| {
        [ResidencyQuery::Cachestat, ResidencyQuery::Mincore]
            .map(|asking| can_ask(asking, &library).then(|| ask(asking)))
    });
    match asked {
        Ok(not_reported) => assert!(
            not_reported.iter().all(|number| *number != Some(0)),
            "{not_reported:?}"
        ),
        Err(error) => stook_testkit::skip!("the user cannot be changed here: {error}"),
    }
    drop(paths);
}

#[test]
fn a_file_that_changes_is_noticed() {
    let _alone = alone_with_the_caches();
    let Some((folder, paths)) = files() else {
        return;
    };
    let inputs = after_a_run(&paths, ResidencyQuery::Cachestat);
    assert_eq!(inputs.changed(), None);
    // A new name in a directory is none of the command's business.
    std::fs::write(folder.join("new"), "x").unwrap();
    assert_eq!(inputs.changed(), None);
    std::fs::write(folder.join("05"), "changed").unwrap();
    assert!(inputs.changed().unwrap().ends_with("05"));
}

#[test]
fn words_of_a_command_that_are_paths_are_found() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.join("a"), "").unwrap();
    let command = ["a", "a", "b", "--c"].map(Into::into);
    let found = words_that_are_paths(&command, Some(folder.path()));
    assert_eq!(found, [folder.join("a")]);
}
