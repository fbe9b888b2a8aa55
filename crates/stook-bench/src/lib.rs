//! Measures storage under small files, and explains where the time of a program goes.
//!
//! Every measurement is a series of [`Sample`]s below one [`Header`]: JSON lines first, then tables, then one page.
//! Commands are run by [`Job`]; nothing here prints. Figures come from `statistics`, which knows nothing of files.

#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests make their own files")
)]

mod cache;
mod cases;
mod error;
pub mod figure;
pub mod fileset;
mod flame;
pub mod fs;
mod job;
mod latency;
mod machine;
mod mount_server;
mod numbers;
pub mod page_state;
mod pair;
pub mod profile;
mod proof;
mod random;
mod record;
mod remedy;
pub mod report;
mod scratch;
mod shares;
mod space;
mod statistics;
mod table;
mod template;
#[cfg(test)]
mod testing;
mod trees;
pub mod update;
mod warnings;

pub use cache::{CacheOptions, CacheOutcome, CacheTables, Watch, cache, server_of};
pub use error::BenchError;
pub use flame::{Palette, flame_graph};
pub use job::{Job, Output, Ran, launch, set_launcher};
pub use latency::Latencies;
pub use machine::Machine;
pub use mount_server::{Kept, MountServer, ServerFigures};
pub use pair::{PairOutcome, PairSide, PairSpec, PairState, pair};
pub use record::{Header, Kind, Phase, Results, Sample, read_results};
pub use remedy::{ProfileRemedy, Remedy};
pub use shares::{Shares, Waited};
pub use statistics::{
    Ratio, Spread, cpu_share, median, median_interval, ratio_of_medians, through_origin,
};
pub use table::Table;
pub use warnings::Warning;

/// Hears how a bench goes on, on several threads at once, and may end it. By itself it hears nothing.
pub trait Observer: Sync {
    /// Says in one line what is done now, such as `round 2 of 5: untar on scratch`.
    fn progress(&self, _text: &str) {}

    /// Begins a phase of so many files and bytes; what was done of it comes by [`Observer::advanced`].
    fn phase(&self, _name: &'static str, _files: Option<u64>, _bytes: Option<u64>) {}

    /// So many more files and bytes are done.
    fn advanced(&self, _files: u64, _bytes: u64) {}

    /// Says something that the user should know, such as what could not be cleaned up.
    fn warning(&self, _text: &str) {}

    /// Says the same where it is known what would help.
    fn warning_with(&self, text: &str, _remedy: &Remedy) {
        self.warning(text);
    }

    /// Gets each sample as soon as it is there, so that a long run that is broken off has given something.
    fn sampled(&self, _sample: &Sample) {}

    /// Returns true if the user wants an end: running commands are ended, and what was made is removed.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Hears nothing: for what is over in a moment.
impl Observer for () {}
