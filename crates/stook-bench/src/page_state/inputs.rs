//! Files that a command reads, of which the kernel can be asked: a bounded random sample.
//!
//! Nobody reads the whole of a library or of a database, so the share that counts is that of the pages that a run from the
//! cold state left in memory: these must be gone when it is cold, and there when it is hot.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use stook_sys::{Context, FileKind, Forget, Metadata, ResidencyQuery, Storage};

use super::mapped::mapped_files;
use super::method::{Method, drop_caches, drop_pages_of, is_droppable};
use crate::error::BenchError;
use crate::random::Random;

/// The file system of a mounted archive. Its server is not asked when a file is opened, so that looking changes nothing.
const ARCHIVE: &str = "fuse.stook";
/// So many files are asked for. Each is open for a moment, and a process may have 1,024.
const SAMPLE: usize = 500;
/// How often it is looked for files that other programs keep in memory.
const LOOKS: usize = 4;
/// The same files of the same list.
const SEED: u64 = 1;
/// Of the pages of one file, what may stay when all is dropped.
const MAY_STAY: f64 = 0.01;

/// A sample of the files that a command reads, and the paths of all.
#[derive(Debug)]
pub(crate) struct Inputs {
    files: Vec<Input>,
    /// Those whose pages can be dropped one file after the other; empty if that is not needed.
    droppable: Vec<PathBuf>,
    /// What the sampled files were at first, also of those that prove nothing.
    known: Vec<(PathBuf, Metadata)>,
    asking: ResidencyQuery,
    left_out: LeftOut,
}

#[derive(Debug)]
struct Input {
    path: PathBuf,
    /// Bytes; 0 of a directory.
    size: u64,
    asking: ResidencyQuery,
    /// Pages that a run left in memory; 0 of a directory, and of what is not read.
    pages: u64,
    /// Whether its name can be asked for.
    has_name: bool,
}

/// What of its inputs a command reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Names and inodes.
    Names,
    /// The content of files, too.
    Data,
}

/// Files that were looked at but prove nothing, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// They lie in memory only.
    pub(crate) in_memory: usize,
    /// A process serves them through FUSE: opening one would change the state of its own caches.
    pub(crate) served: usize,
    /// They belong to others, and the kernel does not tell.
    pub(crate) not_reported: usize,
    /// Their pages stay: other programs have mapped them.
    pub(crate) in_use: usize,
}

/// What is in memory, each as a share of what could be; None if nothing can be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Shares {
    /// Of the pages that a run leaves in memory.
    pub(crate) pages: Option<f64>,
    /// Of the names, and so of the inodes.
    pub(crate) names: Option<f64>,
    /// Files that count for neither: a running program has mapped them by now, so that their pages stay.
    pub(crate) mapped: usize,
    /// How many pages and how many names are in memory.
    pub(crate) counts: (u64, u64),
}

impl fmt::Display for LeftOut {
    /// As `; left out: 2 files in use by other programs`, or nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.in_use, "in use by other programs"),
            (self.in_memory, "in memory only"),
            (self.served, "served through FUSE"),
            (self.not_reported, "of other users"),
        ];
        let reasons = reasons.iter().filter(|(files, _)| *files > 0);
        let texts = reasons.map(|(files, why)| format!("{files} {why}"));
        match texts.collect::<Vec<String>>().join(", ") {
            none if none.is_empty() => Ok(()),
            texts => write!(f, "; left out: {texts}"),
        }
    }
}

impl Inputs {
    /// Looks at files right after a run that began cold, and then at what of them stays when all is dropped.
    ///
    /// If none of their pages is there, somebody else has dropped them, and `run_again` brings them back.
    ///
    /// # Errors
    /// [`BenchError::Sys`] if the kernel cannot be asked at all, those of `run_again`.
    pub(crate) fn after_a_run(
        paths: &[PathBuf],
        method: Method,
        asking: ResidencyQuery,
        run_again: impl Fn() -> Result<(), BenchError>,
    ) -> Result<Self, BenchError> {
        let mut inputs = Self::seen(paths, asking)?;
        for _ in 1..LOOKS {
            if inputs.pages() > 0 || inputs.known.iter().all(|(_, file)| file.size == 0) {
                break;
            }
            run_again()?;
            inputs = Self::seen(paths, asking)?;
        }
        if method == Method::Fadvise {
            inputs.droppable = paths.to_owned();
            inputs.droppable.retain(|path| is_droppable(path));
        }
        for _ in 0..LOOKS {
            inputs.leave_out_what_stays(method)?;
        }
        inputs
            .files
            .retain(|input| input.has_name || input.pages > 0);
        Ok(inputs)
    }

    /// Takes files of which all pages and names count, without a check of what stays when all is dropped: a sample of what
    /// no other program uses.
    ///
    /// # Errors
    /// [`BenchError::Sys`] if the kernel cannot be asked at all.
    pub(crate) fn whole(
        paths: &[PathBuf],
        reads: Reads,
        asking: ResidencyQuery,
    ) -> Result<Self, BenchError> {
        let mut inputs = Self::seen(paths, asking)?;
        for input in &mut inputs.files {
            input.has_name = true;
            input.pages = match reads {
                Reads::Data => input.size.div_ceil(stook_sys::page_bytes()),
                Reads::Names => 0,
            };
        }
        Ok(inputs)
    }

    fn seen(paths: &[PathBuf], asking: ResidencyQuery) -> Result<Self, BenchError> {
        let mut inputs = Self {
            files: Vec::new(),
            droppable: Vec::new(),
            known: Vec::new(),
            asking,
            left_out: LeftOut::default(),
        };
        for path in Random::new(SEED).sample(paths, SAMPLE) {
            inputs.add(path)?;
        }
        Ok(inputs)
    }

    fn add(&mut self, path: &Path) -> Result<(), BenchError> {
        let has_name = stook_sys::is_name_cached(path).unwrap_or(false);
        // What is gone, such as a temporary file of the command, is no input.
        let (Ok(metadata), Ok(mut storage)) = (stook_sys::look_at(path), stook_sys::storage(path))
        else {
            return Ok(());
        };
        if storage == Storage::Fuse && is_in_an_archive(path) {
            storage = Storage::Disk;
        }
        let is_file = metadata.kind == FileKind::File;
        let asking = match storage {
            Storage::Overlay => ResidencyQuery::Mincore,
            _ => self.asking,
        };
        let mut input = Input {
            path: path.to_owned(),
            size: if is_file { metadata.size } else { 0 },
            asking,
            pages: 0,
            has_name,
        };
        match storage {
            Storage::Kernel => return Ok(()),
            Storage::Fuse => {
                self.left_out.served += usize::from(is_file);
                return Ok(());
            }
            Storage::Memory => self.left_out.in_memory += usize::from(is_file),
            Storage::Disk | Storage::Overlay if is_file => match self.pages_of(&mut input)? {
                Some(pages) => self.files.push(Input { pages, ..input }),
                None => self.left_out.not_reported += 1,
            },
            Storage::Disk | Storage::Overlay => {
                let is_directory = metadata.kind == FileKind::Directory;
                self.files.extend(is_directory.then_some(input));
            }
        }
        if is_file {
            self.known.push((path.to_owned(), metadata));
        }
        Ok(())
    }

    /// The pages of a file that are in memory; None if the kernel does not tell.
    fn pages_of(&mut self, input: &mut Input) -> Result<Option<u64>, BenchError> {
        let Ok(file) = stook_sys::open_file(&input.path) else {
            return Ok(None);
        };
        let mut pages = stook_sys::resident_pages(&file, input.asking);
        let is_unsupported = |error: &io::Error| error.kind() == io::ErrorKind::Unsupported;
        if input.asking == ResidencyQuery::Cachestat && pages.as_ref().is_err_and(is_unsupported) {
            (self.asking, input.asking) = (ResidencyQuery::Mincore, ResidencyQuery::Mincore);
            pages = stook_sys::resident_pages(&file, ResidencyQuery::Mincore);
        }
        Ok(pages.context("ask for the pages of", &input.path)?)
    }

    /// What other programs use all the time is back at once, but not always: it takes more than one try.
    fn leave_out_what_stays(&mut self, method: Method) -> Result<(), BenchError> {
        let (pages, names) = self.drop_and_ask(method, Forget::Everything)?;
        let before = self.files.len();
        let files = std::mem::take(&mut self.files).into_iter();
        for (mut input, (left, is_cached)) in files.zip(pages.into_iter().zip(names)) {
            input.has_name &= !is_cached || method == Method::Fadvise;
            if share(left, input.pages).is_none_or(|share| share <= MAY_STAY) {
                self.files.push(input);
            }
        }
        self.left_out.in_use += before - self.files.len();
        Ok(())
    }

    /// Makes the kernel forget, and returns what of the sample is in memory then.
    ///
    /// # Errors
    /// [`BenchError::Refused`] where this user may not.
    pub(crate) fn forget(&self, method: Method, what: Forget) -> Result<Shares, BenchError> {
        let (pages, names) = self.drop_and_ask(method, what)?;
        Ok(self.shares(&pages, &names, &HashSet::new()))
    }

    /// As [`Inputs::forget`], without those files that running programs have mapped: as far as this user may know.
    ///
    /// # Cost
    /// The maps of each process of the machine are read.
    pub(crate) fn forget_unless_mapped(
        &self,
        method: Method,
        what: Forget,
    ) -> Result<Shares, BenchError> {
        let (pages, names) = self.drop_and_ask(method, what)?;
        Ok(self.shares(&pages, &names, &mapped_files()?))
    }

    fn drop_and_ask(
        &self,
        method: Method,
        what: Forget,
    ) -> Result<(Vec<u64>, Vec<bool>), BenchError> {
        let opened = self.open();
        match method {
            Method::DropCaches => drop_caches(what)?,
            Method::Fadvise => drop_pages_of(&self.droppable)?,
        }
        let pages = self.resident(&opened)?;
        drop(opened);
        if what == Forget::Everything && method == Method::DropCaches {
            drop_caches(what)?;
        }
        Ok((pages, self.names()))
    }

    /// Returns what of the sample is in memory. Names come first: asking for pages brings them in.
    ///
    /// # Errors
    /// [`BenchError::Sys`] if the kernel cannot be asked.
    pub(crate) fn ask(&self) -> Result<Shares, BenchError> {
        let names = self.names();
        let pages = self.resident(&self.open())?;
        Ok(self.shares(&pages, &names, &HashSet::new()))
    }

    /// Opens the files that have pages to be asked for.
    fn open(&self) -> Vec<Option<File>> {
        let open = |input: &Input| match input.pages {
            0 => None,
            _ => stook_sys::open_file(&input.path).ok(),
        };
        self.files.iter().map(open).collect()
    }

    fn resident(&self, opened: &[Option<File>]) -> Result<Vec<u64>, BenchError> {
        let ask = |(input, file): (&Input, &Option<File>)| match file {
            None => Ok(0),
            Some(file) => {
                let pages = stook_sys::resident_pages(file, input.asking);
                let pages = pages.context("ask for the pages of", &input.path)?;
                Ok(pages.unwrap_or(0).min(input.pages))
            }
        };
        self.files.iter().zip(opened).map(ask).collect()
    }

    fn names(&self) -> Vec<bool> {
        let is_cached = |input: &Input| stook_sys::is_name_cached(&input.path).unwrap_or(false);
        self.files.iter().map(is_cached).collect()
    }

    fn shares(&self, pages: &[u64], names: &[bool], mapped: &HashSet<PathBuf>) -> Shares {
        let mut found = Shares::default();
        let (mut of_pages, mut of_names) = (0, 0);
        for ((input, &pages), &is_cached) in self.files.iter().zip(pages).zip(names) {
            if mapped.contains(&input.path) {
                found.mapped += 1;
                continue;
            }
            found.counts.0 += pages;
            of_pages += input.pages;
            found.counts.1 += u64::from(input.has_name && is_cached);
            of_names += u64::from(input.has_name);
        }
        found.pages = share(found.counts.0, of_pages);
        found.names = share(found.counts.1, of_names);
        found
    }

    /// Returns a file that is not what it was when it was looked at first.
    pub(crate) fn changed(&self) -> Option<&Path> {
        let is_same = |(path, was): &(PathBuf, Metadata)| {
            stook_sys::look_at(path).is_ok_and(|now| {
                now.is_same_file(was) && (now.size, now.mtime) == (was.size, was.mtime)
            })
        };
        let changed = self.known.iter().find(|known| !is_same(known));
        changed.map(|(path, _)| path.as_path())
    }

    /// Returns true if there is anything to drop, whether it can be asked for or not.
    pub(crate) fn can_drop(&self, method: Method) -> bool {
        method == Method::DropCaches || !self.droppable.is_empty()
    }

    /// Returns how many files are asked for.
    pub(crate) fn count(&self) -> usize {
        self.files.len()
    }

    /// Returns how many pages are asked for.
    pub(crate) fn pages(&self) -> u64 {
        self.files.iter().map(|input| input.pages).sum()
    }

    /// Returns which files prove nothing.
    pub(crate) fn left_out(&self) -> LeftOut {
        self.left_out
    }

    /// Returns how pages are asked for: those of some of the files at least.
    pub(crate) fn asking(&self) -> ResidencyQuery {
        let mut askings = self.files.iter().map(|input| input.asking);
        let by_mincore = askings.find(|asking| *asking == ResidencyQuery::Mincore);
        by_mincore.unwrap_or(self.asking)
    }
}

#[expect(clippy::cast_precision_loss, reason = "nobody has 2^52 pages")]
fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn is_in_an_archive(path: &Path) -> bool {
    let point = stook_sys::MountPoint::at(path).ok();
    let mount = point.and_then(|point| stook_sys::mount_of_device(point.device()));
    mount.is_some_and(|mount| mount.kind == ARCHIVE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_named() {
        let mut left_out = LeftOut::default();
        assert_eq!(left_out.to_string(), "");
        (left_out.in_memory, left_out.in_use) = (2, 1);
        let text = "; left out: 1 in use by other programs, 2 in memory only";
        assert_eq!(left_out.to_string(), text);
    }
}
