//! Who refers to whom: references that lead nowhere, who refers to an object, and the way to it from the root.
//!
//! Only current records count, and in them only references that keep an object: as in ZODB's own pack, weak references and
//! those to other databases are counted and left out.

mod rows;

use crate::data_file::{DataFile, Reader};
use crate::error::ZodbError;
use crate::id::Oid;
use crate::index::{Index, Numbering};
use crate::observer::Observer;
use crate::pickle::{Fault, Reference};
use crate::record::{Data, PickleReader, Record, Visitor, follow, is_encoded, visit_records};
use crate::scan::{Scan, ScanEnd, Start, scan};
use rows::Rows;

/// Dangling references that are listed; all are counted.
const LISTED: usize = 10_000;

/// No slot.
const NONE: u32 = u32::MAX;

/// A reference to an object that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dangling {
    /// The object that refers.
    pub from: Oid,
    /// The object that is not there.
    pub to: Oid,
}

/// How many there are of what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReferenceCounts {
    /// References between objects of the database; of several from one object to another, one.
    pub strong: u64,
    /// Weak references.
    pub weak: u64,
    /// References to other databases.
    pub foreign: u64,
    /// References of a form that is not known.
    pub unknown: u64,
    /// References to objects that are not there.
    pub dangling: u64,
    /// Objects whose creation was undone.
    pub gone: u64,
    /// Objects whose pickles are compressed or encrypted: their references are not known.
    pub encoded: u64,
    /// Objects whose pickles are damaged: their references are not known.
    pub damaged: u64,
}

/// The references between the objects of a database.
#[derive(Debug)]
pub struct References {
    scan: Scan,
    numbering: Numbering,
    rows: Rows,
    dangling: Vec<Dangling>,
    counts: ReferenceCounts,
}

impl References {
    /// Reads the references of all current objects, up to the first transaction that is not perfect.
    ///
    /// # Errors
    /// As [`scan()`]; [`ZodbError::Interrupted`]; [`ZodbError::TooMany`].
    ///
    /// # Cost
    /// Two readings of the file. 16 to 24 bytes an object and 2 to 3 a reference, and a few MB.
    pub fn read(data: &DataFile, observer: &dyn Observer) -> Result<Self, ZodbError> {
        observer.phase("scan", data.size());
        let scan = scan(data, Start::default(), None, observer)?;
        if scan.end == ScanEnd::Interrupted {
            return Err(ZodbError::Interrupted);
        }
        let path = data.path().to_owned();
        let numbering = Numbering::new(&scan.index).ok_or(ZodbError::TooMany { path })?;
        let mut collector = Collector::new(data, &scan.index, &numbering);
        observer.phase("references", scan.position);
        visit_records(data, scan.position, observer, &mut collector)?;
        collector.find_references_to_gone();
        let Collector {
            rows,
            mut dangling,
            mut counts,
            ..
        } = collector;
        dangling.sort_unstable();
        counts.strong = rows.targets;
        Ok(Self {
            scan,
            numbering,
            rows,
            dangling,
            counts,
        })
    }

    /// Returns where reading ended and why, and the index.
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Returns how many there are of what.
    pub fn counts(&self) -> ReferenceCounts {
        self.counts
    }

    /// Returns references to objects that are not there, up to 10,000, sorted.
    pub fn dangling(&self) -> &[Dangling] {
        &self.dangling
    }

    /// Returns the objects that refer to one, sorted.
    ///
    /// # Cost
    /// Goes through all references.
    pub fn referrers(&self, oid: Oid) -> Vec<Oid> {
        let Some(wanted) = self.slot(oid) else {
            let known = self.dangling.iter().filter(|dangling| dangling.to == oid);
            return known.map(|dangling| dangling.from).collect();
        };
        let referring = self
            .slots()
            .filter(|slot| self.rows.get(*slot).any(|target| target == wanted));
        referring.filter_map(|slot| self.oid(slot)).collect()
    }

    /// Returns the objects that one refers to, sorted.
    pub fn targets(&self, oid: Oid) -> Vec<Oid> {
        let slot = self.slot(oid).into_iter();
        let targets = slot.flat_map(|slot| self.rows.get(slot));
        targets.filter_map(|target| self.oid(target)).collect()
    }

    /// Returns a shortest way from the root to an object, with both; `None` if there is none.
    ///
    /// # Cost
    /// Goes through all references; 8 bytes an object.
    pub fn path_from_root(&self, oid: Oid) -> Option<Vec<Oid>> {
        let (root, wanted) = (self.slot(Oid::ROOT)?, self.slot(oid)?);
        let parents = self.parents(root, Some(wanted));
        let mut path = vec![wanted];
        while *path.last()? != root {
            let parent = parents[*path.last()? as usize];
            if parent == NONE {
                return None;
            }
            path.push(parent);
        }
        path.into_iter().rev().map(|slot| self.oid(slot)).collect()
    }

    /// Returns the number of objects that no way leads to from the root: what a pack would remove.
    ///
    /// # Cost
    /// As [`References::path_from_root`].
    pub fn unreachable(&self) -> u64 {
        let Some(root) = self.slot(Oid::ROOT) else {
            return self.scan.index.len() as u64;
        };
        let parents = self.parents(root, None);
        let reached = parents.iter().filter(|parent| **parent != NONE).count();
        (self.scan.index.len() - reached) as u64
    }

    /// For every slot the one it was reached from first; the root is reached from itself.
    fn parents(&self, root: u32, wanted: Option<u32>) -> Vec<u32> {
        let mut parents = vec![NONE; self.numbering.slots()];
        parents[root as usize] = root;
        let mut level = vec![root];
        while !level.is_empty() && wanted.is_none_or(|wanted| parents[wanted as usize] == NONE) {
            let mut next = Vec::new();
            for slot in level {
                for target in self.rows.get(slot) {
                    if parents[target as usize] == NONE {
                        parents[target as usize] = slot;
                        next.push(target);
                    }
                }
            }
            level = next;
        }
        parents
    }

    fn slots(&self) -> impl Iterator<Item = u32> {
        0..u32::try_from(self.numbering.slots()).unwrap_or(NONE)
    }

    fn slot(&self, oid: Oid) -> Option<u32> {
        self.numbering.slot(&self.scan.index, oid)
    }

    fn oid(&self, slot: u32) -> Option<Oid> {
        self.numbering.oid(&self.scan.index, slot)
    }
}

struct Collector<'a> {
    data: &'a DataFile,
    index: &'a Index,
    numbering: &'a Numbering,
    pickles: PickleReader,
    jumping: Reader<'a>,
    rows: Rows,
    targets: Vec<u32>,
    dangling: Vec<Dangling>,
    /// Slots of objects whose creation was undone.
    gone: Vec<u32>,
    counts: ReferenceCounts,
}

impl<'a> Collector<'a> {
    fn new(data: &'a DataFile, index: &'a Index, numbering: &'a Numbering) -> Self {
        Self {
            data,
            index,
            numbering,
            pickles: PickleReader::default(),
            jumping: Reader::jumping(data),
            rows: Rows::new(numbering.slots()),
            targets: Vec::new(),
            dangling: Vec::new(),
            gone: Vec::new(),
            counts: ReferenceCounts::default(),
        }
    }

    /// Takes the references of a record with pickles, the current one of an object or what it leads to.
    fn take(&mut self, reader: &mut Reader<'_>, record: Record) -> Result<(), ZodbError> {
        if is_encoded(reader, record)? {
            self.counts.encoded += 1;
            return Ok(());
        }
        let (from, index, numbering) = (record.header.oid, self.index, self.numbering);
        let (targets, counts, dangling) = (&mut self.targets, &mut self.counts, &mut self.dangling);
        let mut found = |reference| match reference {
            Reference::Strong(to) => match numbering.slot(index, to) {
                Some(slot) => targets.push(slot),
                None => note_dangling(dangling, counts, Dangling { from, to }),
            },
            Reference::Weak(_) => counts.weak += 1,
            Reference::Foreign => counts.foreign += 1,
            Reference::Unknown => counts.unknown += 1,
        };
        match self.pickles.references(reader, record, &mut found) {
            Ok(()) => {}
            Err(Fault::Pickle(_)) => self.counts.damaged += 1,
            Err(Fault::Error(error)) => return Err(*error),
        }
        if let Some(slot) = self.numbering.slot(self.index, from) {
            self.rows.set(slot, &mut self.targets);
        }
        Ok(())
    }

    /// Objects are referred to before it is known that they are gone.
    fn find_references_to_gone(&mut self) {
        if self.gone.is_empty() {
            return;
        }
        self.gone.sort_unstable();
        for slot in 0..u32::try_from(self.numbering.slots()).unwrap_or(NONE) {
            for target in self.rows.get(slot) {
                if self.gone.binary_search(&target).is_err() {
                    continue;
                }
                let [from, to] = [slot, target].map(|slot| self.numbering.oid(self.index, slot));
                if let Some((from, to)) = from.zip(to) {
                    note_dangling(&mut self.dangling, &mut self.counts, Dangling { from, to });
                }
            }
        }
    }
}

fn note_dangling(list: &mut Vec<Dangling>, counts: &mut ReferenceCounts, dangling: Dangling) {
    counts.dangling += 1;
    if list.len() < LISTED {
        list.push(dangling);
    }
}

impl Visitor for Collector<'_> {
    fn record(&mut self, reader: &mut Reader<'_>, record: Record) -> Result<(), ZodbError> {
        let oid = record.header.oid;
        if self.index.get(oid) != Some(record.position) {
            return Ok(());
        }
        if !record.header.is_pointer() {
            return self.take(reader, record);
        }
        match follow(&mut self.jumping, record)? {
            Data::Pickles(found) => {
                let mut jumping = Reader::jumping(self.data);
                self.take(&mut jumping, found)?;
            }
            Data::Gone => {
                self.counts.gone += 1;
                self.gone.extend(self.numbering.slot(self.index, oid));
            }
            Data::Astray { .. } => self.counts.damaged += 1,
        }
        Ok(())
    }
}
