//! What takes the space: by class, by object and by day.
//!
//! One pass: every record counts as current until a later one of its object comes, and then as old. Class and length of
//! the current record are kept for each object, in an index of their own. Bytes are those of the pickles in a record; a
//! record that is only a back pointer has none, and the class of what it leads to.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use crate::data_file::{DataFile, Reader};
use crate::error::ZodbError;
use crate::id::{Day, Oid};
use crate::index::{GREATEST_POSITION, Index};
use crate::observer::Observer;
use crate::record::{Data, PickleReader, Record, Visitor, follow, is_encoded};
use crate::scan::{Scan, ScanEnd, Start, scan_with};
use crate::transaction::Transaction;

/// Objects that are listed.
const LISTED: usize = 20;

/// Bytes of names of classes that are kept; what comes then counts as one class.
const MOST_NAME_BYTES: usize = 8 << 20;

/// Classes that are kept apart: their numbers have 16 bits.
const MOST_CLASSES: usize = 60_000;

/// The class of what is not kept apart.
const OTHERS: &[u8] = b"(other classes)";

/// A record that is longer counts as one of 4 GiB: lengths have 32 bits here.
const LONGEST: u64 = u32::MAX as u64;

/// Days that are kept apart: more than 1,000 years.
const MOST_DAYS: usize = 400_000;

/// A number of records and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Number of records.
    pub records: u64,
    /// Bytes of their pickles.
    pub bytes: u64,
}

/// What the objects of a class take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassUse {
    /// `module.name`; in brackets what is none: `(unknown)`, `(encoded)`, `(gone)`, `(other classes)`.
    pub class: String,
    /// Current records.
    pub current: Amount,
    /// Records that a later one replaces: what a pack may remove.
    pub old: Amount,
}

/// What an object takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectUse {
    /// The object.
    pub oid: Oid,
    /// Its class, as in [`ClassUse::class`].
    pub class: String,
    /// Bytes of its current pickles.
    pub current_bytes: u64,
    /// All its records.
    pub all: Amount,
}

/// What was written on a day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayUse {
    /// The day, in UTC.
    pub day: Day,
    /// Transactions of that day.
    pub transactions: u64,
    /// Bytes that they take in the file, with all headers.
    pub bytes: u64,
}

/// What takes the space of a database.
#[derive(Debug)]
pub struct Analysis {
    /// Where counting ended and why, and the index.
    pub scan: Scan,
    /// All current records.
    pub current: Amount,
    /// All others.
    pub old: Amount,
    /// The classes, those with the most bytes first.
    pub classes: Vec<ClassUse>,
    /// Objects with the longest current records, up to 20.
    pub largest: Vec<ObjectUse>,
    /// Objects with the most bytes in all their records, up to 20.
    pub most_written: Vec<ObjectUse>,
    /// The days, in order.
    pub days: Vec<DayUse>,
}

/// Counts what takes the space of a database, up to the first transaction that is not perfect.
///
/// # Errors
/// As [`scan`](crate::scan()); [`ZodbError::Interrupted`].
///
/// # Cost
/// One reading of the file, a few MB and 24 bytes an object.
pub fn analyze(data: &DataFile, observer: &dyn Observer) -> Result<Analysis, ZodbError> {
    observer.phase("analyze", data.size());
    let mut counter = Counter::new(data);
    let scan = scan_with(data, Start::default(), None, observer, &mut counter)?;
    if scan.end == ScanEnd::Interrupted {
        return Err(ZodbError::Interrupted);
    }
    counter.finish(scan)
}

struct Counter<'a> {
    pickles: PickleReader,
    jumping: Reader<'a>,
    classes: Classes,
    /// Class and length of each object's current record.
    uses: Index,
    /// Bytes of all records of each object, and one more: an index has no zeros.
    totals: Index,
    days: Vec<DayUse>,
    name: Vec<u8>,
}

/// The number of a class and the length of a record, in the 48 bits that an index has for each object.
fn packed(class: u16, bytes: u64) -> u64 {
    u64::from(class) << 32 | bytes.min(LONGEST)
}

/// The reverse of [`packed`].
fn unpacked(packed: u64) -> (u16, u64) {
    let class = u16::try_from(packed >> 32).expect("an index has 48 bits");
    (class, packed & LONGEST)
}

impl<'a> Counter<'a> {
    fn new(data: &'a DataFile) -> Self {
        Self {
            pickles: PickleReader::default(),
            jumping: Reader::jumping(data),
            classes: Classes::default(),
            uses: Index::new(),
            totals: Index::new(),
            days: Vec::new(),
            name: Vec::new(),
        }
    }

    /// Puts the class of a record into `self.name`.
    fn class_of(&mut self, reader: &mut Reader<'_>, record: Record) -> Result<(), ZodbError> {
        self.name.clear();
        if !record.header.is_pointer() {
            return class_of_pickles(&mut self.pickles, reader, record, &mut self.name);
        }
        match follow(&mut self.jumping, record)? {
            Data::Pickles(found) => {
                let (pickles, jumping) = (&mut self.pickles, &mut self.jumping);
                return class_of_pickles(pickles, jumping, found, &mut self.name);
            }
            Data::Gone => self.name.extend_from_slice(b"(gone)"),
            Data::Astray { .. } => self.name.extend_from_slice(b"(unknown)"),
        }
        Ok(())
    }

    fn finish(mut self, scan: Scan) -> Result<Analysis, ZodbError> {
        let largest = most(
            self.uses
                .iter()
                .map(|(oid, packed)| (unpacked(packed).1, oid)),
        );
        let most_written = most(self.totals.iter().map(|(oid, total)| (total - 1, oid)));
        let largest = self.objects(&largest, &scan)?;
        let most_written = self.objects(&most_written, &scan)?;
        let classes = self.classes.finish();
        let total = |of: fn(&ClassUse) -> Amount| {
            let amounts = classes.iter().map(of);
            amounts.fold(Amount::default(), |sum, amount| Amount {
                records: sum.records + amount.records,
                bytes: sum.bytes + amount.bytes,
            })
        };
        Ok(Analysis {
            current: total(|class| class.current),
            old: total(|class| class.old),
            largest,
            most_written,
            days: self.days,
            classes,
            scan,
        })
    }

    fn objects(&mut self, oids: &[Oid], scan: &Scan) -> Result<Vec<ObjectUse>, ZodbError> {
        let mut objects = Vec::with_capacity(oids.len());
        for oid in oids {
            let (class, current_bytes) = unpacked(self.uses.get(*oid).unwrap_or(0));
            let bytes = self.totals.get(*oid).map_or(0, |total| total - 1);
            let records = self.records_of(scan.index.get(*oid).unwrap_or(0))?;
            objects.push(ObjectUse {
                oid: *oid,
                class: self.classes.name(class),
                current_bytes,
                all: Amount { records, bytes },
            });
        }
        Ok(objects)
    }

    /// The length of the chain of an object's records.
    fn records_of(&mut self, mut position: u64) -> Result<u64, ZodbError> {
        let mut records = 0;
        while position != 0 {
            records += 1;
            let record = Record::read(&mut self.jumping, position)?;
            let previous = record.map_or(0, |record| record.header.previous);
            position = if previous < position { previous } else { 0 };
        }
        Ok(records)
    }
}

/// The objects with the most bytes, and of equals the first ones.
fn most(bytes: impl Iterator<Item = (u64, Oid)>) -> Vec<Oid> {
    let mut heap = BinaryHeap::new();
    for (bytes, oid) in bytes {
        heap.push(Reverse((bytes, Reverse(oid))));
        if heap.len() > LISTED {
            heap.pop();
        }
    }
    let sorted = heap.into_sorted_vec().into_iter();
    sorted.map(|Reverse((_, Reverse(oid)))| oid).collect()
}

impl Visitor for Counter<'_> {
    fn transaction(&mut self, transaction: &Transaction) {
        let day = transaction.tid.day();
        let bytes = transaction.next() - transaction.position;
        let is_full = self.days.len() >= MOST_DAYS;
        match self.days.last_mut() {
            Some(last) if last.day == day || is_full => {
                last.transactions += 1;
                last.bytes += bytes;
            }
            _ => self.days.push(DayUse {
                day,
                transactions: 1,
                bytes,
            }),
        }
    }

    fn record(&mut self, reader: &mut Reader<'_>, record: Record) -> Result<(), ZodbError> {
        self.class_of(reader, record)?;
        let oid = record.header.oid;
        let bytes = record.header.pickle_len.min(LONGEST);
        let class = self.classes.number(&self.name);
        let old = self.uses.replace(oid, packed(class, bytes));
        if old != 0 {
            let (class, bytes) = unpacked(old);
            self.classes.retire(class, bytes);
        }
        self.classes.add(class, bytes);
        let total = self.totals.get(oid).unwrap_or(1).saturating_add(bytes);
        self.totals.replace(oid, total.min(GREATEST_POSITION));
        Ok(())
    }
}

/// Puts the class of a record with pickles into `name`.
fn class_of_pickles(
    pickles: &mut PickleReader,
    reader: &mut Reader<'_>,
    record: Record,
    name: &mut Vec<u8>,
) -> Result<(), ZodbError> {
    pickles.class(reader, record, name)?;
    if name.is_empty() {
        let is_encoded = is_encoded(reader, record)?;
        let words: &[u8] = if is_encoded {
            b"(encoded)"
        } else {
            b"(unknown)"
        };
        name.extend_from_slice(words);
    }
    Ok(())
}

/// Amounts by class. Numbers begin with 1: an index has no zeros.
#[derive(Debug, Default)]
struct Classes {
    numbers: HashMap<Box<[u8]>, u16>,
    uses: Vec<ClassUse>,
    name_bytes: usize,
}

impl Classes {
    fn number(&mut self, name: &[u8]) -> u16 {
        match self.numbers.get(name) {
            Some(number) => *number,
            None => self.new_number(name),
        }
    }

    fn new_number(&mut self, name: &[u8]) -> u16 {
        self.name_bytes += name.len();
        let is_full = self.name_bytes > MOST_NAME_BYTES || self.uses.len() >= MOST_CLASSES;
        let name = if is_full { OTHERS } else { name };
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.uses.push(ClassUse {
            class: String::from_utf8_lossy(name).into_owned(),
            current: Amount::default(),
            old: Amount::default(),
        });
        let number = u16::try_from(self.uses.len()).expect("60,001 classes at most");
        self.numbers.insert(name.into(), number);
        number
    }

    fn of(&mut self, number: u16) -> &mut ClassUse {
        &mut self.uses[usize::from(number) - 1]
    }

    fn name(&mut self, number: u16) -> String {
        self.of(number).class.clone()
    }

    /// A record comes, which is current.
    fn add(&mut self, number: u16, bytes: u64) {
        let current = &mut self.of(number).current;
        current.records += 1;
        current.bytes += bytes;
    }

    /// A record is current no longer.
    fn retire(&mut self, number: u16, bytes: u64) {
        let class = self.of(number);
        class.current.records -= 1;
        class.current.bytes -= bytes;
        class.old.records += 1;
        class.old.bytes += bytes;
    }

    /// Returns the classes, those with the most bytes first.
    fn finish(self) -> Vec<ClassUse> {
        let mut classes = self.uses;
        classes.sort_by(|one, other| {
            let bytes = |class: &ClassUse| class.current.bytes + class.old.bytes;
            let order = bytes(other).cmp(&bytes(one));
            order.then_with(|| one.class.cmp(&other.class))
        });
        classes
    }
}
