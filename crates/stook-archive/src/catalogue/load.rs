//! From an open archive to a catalogue.
//!
//! ```text
//!   index ──attributes, decoded──> table ┐
//!     └────rows, side by side────────────┴─> parts ──arrange──> entries ──> names and facts in their order ──> hard links
//! ```

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use stook_index::{AsOf, Index, IndexDamage, IndexError, RowId, Snapshot};
use stook_pool::Jobs;
use stook_timers::scope;

use super::arrange::{Arranged, Deletion, Item, arrange};
use super::directories::Directories;
use super::extras::Extras;
use super::facts::{Facts, HAS_EXTRA, NO_ATTRIBUTES};
use super::links::Links;
use super::part::{BadName, Part, PartRows, Volumes as VolumeNumbers};
use super::shared::SharedTable;
use super::{Catalogue, EntryId};
use crate::ArchiveError;
use crate::archive::{Archive, Parts};
use crate::cause::Cause;
use crate::observer::{CountingObserver, Failure, Observer};
use crate::read::Volumes;

/// What to load.
#[derive(Debug, Clone, Copy)]
pub struct CatalogueOptions {
    /// The state.
    pub as_of: AsOf,
    /// Which rows of each name.
    pub versions: Versions,
    /// How many workers.
    pub jobs: Jobs,
    /// How many frames of compressed volumes are decoded at a time, for all readers together. If they are several, frames are
    /// decoded ahead of readers that go forward. `None`: every reader decodes what it needs, and nothing else.
    pub decode_threads: Option<NonZeroUsize>,
}

/// Which rows of a name are in a catalogue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Versions {
    /// The newest, if it is not deleted.
    #[default]
    Newest,
    /// All of files that were archived up to the state, deleted ones, too. The name is that of a directory, in which each
    /// version is a file `row-17`, named after the id of its row.
    All,
}

impl Default for CatalogueOptions {
    fn default() -> Self {
        Self {
            as_of: AsOf::Now,
            versions: Versions::Newest,
            jobs: Jobs::Adaptive,
            decode_threads: None,
        }
    }
}

impl Archive {
    /// Loads a state of the archive into memory. Released names are in it, deleted ones are not. Drop the archive to close its
    /// index: the catalogue does not need it.
    ///
    /// # Errors
    /// `Index` if the index cannot be read or has no such run, `TooManyEntries`, `Interrupted`. What cannot be shown is no
    /// error: it is reported and counted.
    ///
    /// # Cost
    /// A pass over rows and attributes, in parallel: below a second for 1.3 million entries on two processors. 80 bytes an
    /// entry and its name, and half as much for each more while it loads; 24 bytes and the name for each deletion.
    pub fn catalogue(
        &mut self,
        options: &CatalogueOptions,
        observer: &dyn Observer,
    ) -> Result<Catalogue, ArchiveError> {
        let _scope = scope!("catalogue");
        let observer = CountingObserver::new(observer);
        let Parts { index, store, .. } = self.parts(&observer)?;
        observer.phase("catalogue", None, None);
        let read = Read::of(index, *options)?;
        index.require_unchanged()?;
        let store = Arc::clone(store);
        let volumes = match options.decode_threads {
            Some(threads) => Volumes::with_decoders(store, threads),
            None => Volumes::new(store),
        };
        let mut catalogue = read.into_catalogue(options.jobs, volumes, &observer)?;
        // Failures and damages are counted together by the observer.
        catalogue.failures = observer.failures();
        catalogue.damages = observer.damages();
        Ok(catalogue)
    }
}

/// All that is read of the index.
struct Read {
    parts: Vec<PartRows>,
    deletions: Vec<(Vec<u8>, RowId)>,
    /// Of attributes: headers are read instead.
    damages: Vec<IndexDamage>,
    /// Of deletions: names may be shown that were deleted.
    lost_deletions: Vec<IndexDamage>,
}

impl Read {
    fn of(index: &Index, options: CatalogueOptions) -> Result<Self, IndexError> {
        let _scope = scope!("read");
        index.in_one_state(options.jobs, |snapshot| {
            Self::of_snapshot(snapshot, options)
        })
    }

    fn of_snapshot(snapshot: &Snapshot<'_>, options: CatalogueOptions) -> Result<Self, IndexError> {
        let (table, damages) = {
            let _scope = scope!("attributes");
            snapshot.attributes()?
        };
        let parts = {
            let _scope = scope!("rows");
            snapshot.rows(
                options.as_of,
                |rows| Part::new(&table, rows, options.versions),
                Part::take,
            )?
        };
        let parts = parts.into_iter().map(Part::into_rows).collect();
        let (mut deletions, mut lost_deletions) = (Vec::new(), Vec::new());
        if options.versions == Versions::Newest {
            snapshot.deletions(
                options.as_of,
                |name, last| deletions.push((name.to_vec(), last)),
                |damage| lost_deletions.push(damage),
            )?;
        }
        Ok(Self {
            parts,
            deletions,
            damages,
            lost_deletions,
        })
    }

    fn into_catalogue(
        self,
        jobs: Jobs,
        volumes: Volumes,
        observer: &CountingObserver<'_>,
    ) -> Result<Catalogue, ArchiveError> {
        let bad_names = newest_bad_names(&self.parts, &self.deletions);
        for bad in &bad_names {
            observer.failed(&Failure::new("show", &bad.name, bad.cause.clone()));
        }
        drop(bad_names);
        for damage in &self.damages {
            observer.index_damaged(damage);
        }
        let unreadable = self.parts.iter().flat_map(|part| &part.unreadable);
        for damage in unreadable.chain(&self.lost_deletions) {
            observer.failed(&Failure::row(damage));
        }
        let deletions = self.deletions.into_iter();
        let deletions: Vec<Deletion> = deletions
            .filter_map(|(name, last)| Deletion::of(name, last))
            .collect();
        let parts = self.parts;
        let (directories, of_parts) = {
            let _scope = scope!("directories");
            Directories::of(&parts)
        };
        require_few(&parts, &directories)?;
        let is_interrupted = || observer.is_interrupted();
        let arranged = {
            let _scope = scope!("arrange");
            arrange(
                &parts,
                (&directories, &of_parts),
                &deletions,
                jobs,
                &is_interrupted,
            )
        };
        if observer.is_interrupted() {
            return Err(ArchiveError::Interrupted);
        }
        for item in &arranged.damaged {
            let (part, row) = item.place();
            if let Some(damage) = parts[part].damage(row) {
                observer.failed(&Failure::row(damage));
            }
        }
        let _scope = scope!("fill");
        let numbers = Numbers::of(&parts);
        let named = Named::of(&parts, &directories, &arranged, &is_interrupted);
        let named = named.ok_or(ArchiveError::Interrupted)?;
        for path in &named.shadowed {
            observer.failed(&Failure::new("show", path, Cause::IsDirectoryToo));
        }
        let facts: Vec<_> = parts.iter().map(|part| Arc::clone(&part.facts)).collect();
        // All else is in its new place: it goes before as much memory is needed for the facts.
        drop((directories, of_parts));
        drop(parts);
        let facts = fill(facts, &numbers, &arranged);
        Ok(named.into_catalogue(facts, arranged, numbers, volumes))
    }
}

/// Returns the rows without a path that are the newest of their names, and not deleted.
fn newest_bad_names<'p>(parts: &'p [PartRows], deletions: &[(Vec<u8>, RowId)]) -> Vec<&'p BadName> {
    let mut newest: HashMap<&[u8], &BadName> = HashMap::new();
    for bad in parts.iter().flat_map(|part| &part.bad_names) {
        // Rows come in the order of their ids.
        newest.insert(&bad.name, bad);
    }
    if newest.is_empty() {
        return Vec::new();
    }
    for (name, last) in deletions {
        if newest.get(&name[..]).is_some_and(|bad| bad.row <= last.0) {
            newest.remove(&name[..]);
        }
    }
    let mut bad_names: Vec<&BadName> = newest.into_values().collect();
    bad_names.sort_unstable_by_key(|bad| bad.row);
    bad_names
}

/// Entries have numbers of 32 bits.
fn require_few(parts: &[PartRows], directories: &Directories<'_>) -> Result<(), ArchiveError> {
    let rows: usize = parts.iter().map(PartRows::len).sum();
    let entries = rows.saturating_add(directories.len());
    if entries >= u32::MAX as usize {
        return Err(ArchiveError::TooManyEntries { entries });
    }
    Ok(())
}

/// Entries that are filled between two questions whether to go on.
const ENTRIES_BETWEEN: u32 = 1 << 16;

/// Returns the facts of all entries in their order. Those of a part go when the last of them is in its place: files of one depth
/// come in the order of their paths, as rows mostly do, so the facts are hardly there twice.
fn fill(mut parts: Vec<Arc<Vec<Facts>>>, numbers: &Numbers, arranged: &Arranged) -> Vec<Facts> {
    let mut left = vec![0_usize; parts.len()];
    for item in arranged.rows.iter().filter(|&&item| item != Item::NONE) {
        left[item.place().0] += 1;
    }
    let mut facts = Vec::with_capacity(arranged.rows.len());
    facts.extend(arranged.rows.iter().map(|&item| match item {
        Item::NONE => Facts::IMPLIED,
        item => {
            let (part, row) = item.place();
            let fact = parts[part][row as usize];
            left[part] -= 1;
            if left[part] == 0 {
                parts[part] = Arc::default();
            }
            numbers.translate(part, fact)
        }
    }));
    drop(parts);
    add_times(&mut facts, &arranged.parents);
    facts
}

/// Gives directories without a row the latest time of what is in them. Children come behind their parents.
fn add_times(facts: &mut [Facts], parents: &[u32]) {
    for entry in (1..facts.len()).rev() {
        let time = facts[entry].mtime;
        let parent = &mut facts[parents[entry] as usize];
        if !parent.has(super::HAS_ROW) {
            parent.mtime = parent.mtime.max(time);
        }
    }
    if let [root] = facts {
        root.mtime = stook_index::Mtime(0);
    }
}

/// Numbers that are the same for all parts.
struct Numbers {
    shared: SharedTable,
    volumes: VolumeNumbers,
    /// The numbers of each part.
    of_parts: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Numbers {
    fn of(parts: &[PartRows]) -> Self {
        let mut shared = SharedTable::default();
        let mut volumes = VolumeNumbers::default();
        let mut of_part = |part: &PartRows| {
            let list = part.volumes.list.iter();
            let volumes = list.map(|&volume| volumes.number(volume)).collect();
            (shared.merge(&part.shared), volumes)
        };
        let of_parts = parts.iter().map(&mut of_part).collect();
        Self {
            shared,
            volumes,
            of_parts,
        }
    }

    fn translate(&self, part: usize, mut facts: Facts) -> Facts {
        let (shared, volumes) = &self.of_parts[part];
        if facts.shared != NO_ATTRIBUTES {
            facts.shared = shared[facts.shared as usize];
        }
        facts.volume = volumes[facts.volume as usize];
        facts
    }
}

/// The names of all entries in their order, and what few of them have.
#[derive(Default)]
struct Named {
    names: Vec<u8>,
    name_ends: Vec<usize>,
    extras: Extras,
    linked: Vec<(u32, Box<[u8]>)>,
    /// Paths of files that are directories, too.
    shadowed: Vec<Vec<u8>>,
}

impl Named {
    /// `None` if it was interrupted.
    fn of(
        parts: &[PartRows],
        directories: &Directories<'_>,
        arranged: &Arranged,
        is_interrupted: &dyn Fn() -> bool,
    ) -> Option<Self> {
        let mut named = Self {
            names: Vec::with_capacity(parts.iter().map(PartRows::name_bytes).sum()),
            name_ends: Vec::with_capacity(arranged.rows.len()),
            ..Self::default()
        };
        let items = (0_u32..).zip(arranged.rows.iter().zip(&arranged.directories));
        for (entry, (&item, &directory)) in items {
            if entry.is_multiple_of(ENTRIES_BETWEEN) && is_interrupted() {
                return None;
            }
            if item == Item::NONE {
                named.push(directories.name(directory));
                continue;
            }
            let (part, row) = item.place();
            let part = &parts[part];
            named.push(part.name(row));
            if part.facts[row as usize].has(HAS_EXTRA) {
                named.add_extra(entry, part, row);
            }
        }
        let shadowed = arranged.shadowed.iter().map(|item| {
            let (part, row) = item.place();
            parts[part].path(row)
        });
        named.shadowed = shadowed.collect();
        Some(named)
    }

    fn push(&mut self, name: &[u8]) {
        self.names.extend_from_slice(name);
        self.name_ends.push(self.names.len());
    }

    fn add_extra(&mut self, entry: u32, part: &PartRows, row: u32) {
        let Some(extra) = part.extra(row) else {
            return;
        };
        self.extras
            .add(entry, extra.target, extra.device, extra.raw_name);
        if !extra.link.is_empty() {
            self.linked.push((entry, extra.link.into()));
        }
    }

    fn into_catalogue(
        mut self,
        facts: Vec<Facts>,
        arranged: Arranged,
        numbers: Numbers,
        volumes: Volumes,
    ) -> Catalogue {
        self.extras.shrink_to_fit();
        let mut catalogue = Catalogue {
            names: fitted(self.names),
            name_ends: self.name_ends,
            parents: fitted(arranged.parents),
            first_children: fitted(arranged.first_children),
            facts,
            shared: fitted(numbers.shared.into_list()),
            extras: self.extras,
            links: Links::default(),
            volume_ids: fitted(numbers.volumes.list),
            volumes,
            headers: Mutex::default(),
            failures: 0,
            damages: 0,
        };
        let linked = self.linked.iter().map(|(entry, link)| (*entry, &**link));
        catalogue.links = Links::of(&catalogue, linked.collect());
        catalogue
    }
}

fn fitted<T>(mut list: Vec<T>) -> Vec<T> {
    list.shrink_to_fit();
    list
}

const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Catalogue>();
    is_shared::<EntryId>();
};
