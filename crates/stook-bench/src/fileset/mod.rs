//! File sets: trees of many files that are the same everywhere for a seed, bit for bit.
//!
//! [`make`] plans all of the set, tells whether there is free space for it, and lets workers make it. What the set is like
//! says a [`Spec`]; what comes out depends on nothing but spec, seed and number of files: not on workers, the mask of
//! modes, or the C library. Nothing is synced.

mod content;
mod distribution;
mod fill;
mod place;
mod plan;
mod properties;
mod spec;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use distribution::{Distribution, Sizes};
pub use properties::Properties;
pub use spec::{Levels, Shape, Spec, Times};
pub use stook_pool::Jobs;
use stook_timers::scope;

use crate::Observer;
use crate::error::BenchError;
use crate::remedy::Remedy;
use place::Claimed;
use plan::Plan;

/// Which file set to make.
#[derive(Debug, Clone)]
pub struct FilesetOptions {
    /// What it is like.
    pub spec: Spec,
    /// How many files it has.
    pub files: u64,
    /// Sets with different seeds have nothing in common.
    pub seed: u64,
    /// How many workers make it.
    pub jobs: Jobs,
    /// What the files hold.
    pub filling: Filling,
}

/// What files of a set hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Filling {
    /// What the spec says.
    #[default]
    Content,
    /// A hole as large as the file, which takes no room on the disk.
    Hole,
}

/// Makes a file set in `dir`, which is made, or is there and empty.
///
/// A directory that was made is removed again if the set cannot be completed: a part can neither be used nor be gone on
/// with, and a full file system is in the way of others. In one that was there, what was made stays, and is warned of.
///
/// # Errors
/// [`BenchError::Usage`] for no files or too many; [`BenchError::Refused`] if `dir` is not empty, or there is too little free space;
/// [`BenchError::Interrupted`] if the observer wants an end; [`BenchError::Sys`] for the first call that fails.
///
/// # Cost
/// Before anything is made, 0.13 us a file for the figures; 8 bytes of memory a directory.
pub fn make(
    dir: &Path,
    options: &FilesetOptions,
    observer: &dyn Observer,
) -> Result<Properties, BenchError> {
    let _scope = scope!("fileset");
    let plan = Plan::new(&options.spec, options.files, options.seed)?;
    let (properties, mut need) = {
        let _scope = scope!("plan");
        properties::survey(&plan, observer)?
    };
    if options.filling == Filling::Hole {
        need.bytes = plan.directories() * properties::BLOCK;
    }
    let claimed = Claimed::new(dir)?;
    observer.phase("make", Some(properties.files), Some(properties.bytes));
    let made = need
        .require(dir, Remedy::MakeFewerFiles)
        .and_then(|()| fill::fill(&plan, claimed.directory(), dir, options, observer));
    match made {
        Ok(()) => Ok(properties),
        Err(error) => {
            claimed.give_back(observer);
            Err(error)
        }
    }
}

/// Returns the figures that [`make`] would return, and makes nothing.
///
/// # Errors
/// [`BenchError::Usage`] for no files or too many; [`BenchError::Interrupted`] if the observer wants an end.
pub fn properties(
    options: &FilesetOptions,
    observer: &dyn Observer,
) -> Result<Properties, BenchError> {
    let plan = Plan::new(&options.spec, options.files, options.seed)?;
    Ok(properties::survey(&plan, observer)?.0)
}
