//! Copier all directories before any file, where that is worth a second look at them.
//!
//! ext4 gives a new file an inode near its directory's, and passes over those that were freed in the last minutes, one by
//! one. Of directories that are made while their neighbourhood fills up it puts many into one, and each file then is
//! searched for among all that were ever in it. Made first, they are spread: 100,000 files, copied where as many had just
//! been removed, take a third of the time.

use std::io;

use stook_pool::WorkerPool;
use stook_sys::{Directory, FileId, FileKind};
use stook_timers::scope;

use super::context::CopyContext;
use super::options::OPEN_FILES;
use super::state::Pair;
use crate::names::Names;
use crate::path::{join, split};
use crate::traverse::HandleBudget;

/// What lies deeper is made on the way: the way there from the root is walked for each.
const DEEPEST: usize = 64;

/// A directory in one whose copy is there.
struct Task {
    path: Vec<u8>,
    depth: usize,
}

/// Makes the directories of the tree in its copy, which is new. What cannot be made here is made, or named, on the way.
pub(super) fn make_directories(
    context: &CopyContext<'_>,
    pair: &Pair,
    leave_out: Option<FileId>,
    budget: &HandleBudget,
) {
    let _scope = scope!("mkdir-ahead");
    let Some(copy) = &pair.copy else {
        return;
    };
    let root = Task {
        path: Vec::new(),
        depth: 0,
    };
    let pool = WorkerPool::new("mkdir-ahead", context.options.jobs)
        .at_most(budget.most_workers(OPEN_FILES));
    pool.recursive([root], |task, tasks| {
        if let Ok(Some(below)) = make(context, pair, copy, leave_out, &task) {
            tasks.extend(below);
        }
    });
}

/// Makes one directory, and returns those in it; None if it belongs to the copy.
fn make(
    context: &CopyContext<'_>,
    pair: &Pair,
    copy: &Directory,
    leave_out: Option<FileId>,
    task: &Task,
) -> io::Result<Option<Vec<Task>>> {
    let source = if context.options.one_file_system {
        pair.source.open_on_same_mount(&task.path)?
    } else {
        pair.source.open_beneath(&task.path)?
    };
    // The copy may be mounted somewhere in the tree.
    if Some(source.own_metadata()?.identity()) == leave_out {
        return Ok(None);
    }
    if !task.path.is_empty() {
        let (above, name) = split(&task.path);
        copy.open_beneath(above)?.create_directory(name, 0o700)?;
    }
    if task.depth == DEEPEST {
        return Ok(None);
    }
    Names::with(|names| {
        names.read(&source)?;
        let found = names.all.iter();
        let directories = found.filter(|name| name.kind == Some(FileKind::Directory));
        let below = directories.map(|name| Task {
            path: join(&task.path, name.place.of(&names.bytes)),
            depth: task.depth + 1,
        });
        Ok(Some(below.collect()))
    })
}
