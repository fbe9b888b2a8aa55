//! How much memory the buffers of a run may take, and how many workers its descriptors allow.

use stook_pool::{Jobs, WorkerPool};
use stook_sys::{memory_limit, most_open_files};

/// Buffers of a run, all together, where memory is not short: enough for 128 workers with a usual batch
/// of small files each.
const BUDGET_BYTES: u64 = 64 << 20;

/// Descriptors of a worker at most: a directory and two above it, a file, a volume, and one more on the way.
const FILES_OF_A_WORKER: usize = 6;

/// Descriptors for everything else: eight volumes being written and as many on their way to the disk, with
/// their rows; the index, its journal, the lock.
const OTHER_FILES: usize = 48;

/// Returns the bytes that the buffers of a run may take: where memory is limited, an eighth of it.
pub(crate) fn budget_bytes() -> usize {
    let bytes = BUDGET_BYTES.min(memory_limit() / 8);
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Returns how much of what a run has written may stay in the page cache: a quarter of memory, so that a
/// small archive can be read back at once, and a large one does not drive out everything else.
pub(crate) fn cached_bytes() -> u64 {
    memory_limit() / 4
}

/// Bytes of the budget for a worker: a batch of small files. With less, most would only wait.
const BYTES_OF_A_WORKER: usize = 512 << 10;

/// Returns a pool of not more workers than can open what they need, and find room for it.
pub(crate) fn worker_pool(name: &'static str, jobs: Jobs) -> WorkerPool<'static> {
    let files = most_open_files();
    let files = files.saturating_sub(OTHER_FILES.min(files / 2));
    WorkerPool::new(name, jobs)
        .at_most(files / FILES_OF_A_WORKER)
        .at_most(budget_bytes() / BYTES_OF_A_WORKER)
}
