//! What `stook zodb` prints, as lines of JSON and as text.

use serde::Serialize;
use stook_zodb::{
    Analysis, Checked, ClassUse, Damage, DayUse, IndexState, ObjectUse, Oid, References, Reindexed,
    Scan, ScanEnd,
};

use crate::number::{count, grouped, size};

/// Damage in a database.
#[derive(Serialize)]
pub(crate) struct ZodbDamage {
    position: u64,
    oid: Option<String>,
    text: String,
}

impl ZodbDamage {
    pub(crate) fn new(damage: &Damage) -> Self {
        Self {
            position: damage.position,
            oid: damage.oid.map(|oid| oid.to_string()),
            text: damage.kind.to_string(),
        }
    }
}

/// What a class takes.
#[derive(Serialize)]
pub(crate) struct ZodbClass<'a> {
    class: &'a str,
    current_records: u64,
    current_bytes: u64,
    old_records: u64,
    old_bytes: u64,
}

impl<'a> ZodbClass<'a> {
    pub(crate) fn new(class: &'a ClassUse) -> Self {
        Self {
            class: &class.class,
            current_records: class.current.records,
            current_bytes: class.current.bytes,
            old_records: class.old.records,
            old_bytes: class.old.bytes,
        }
    }
}

/// What an object takes, and in which list it is.
#[derive(Serialize)]
pub(crate) struct ZodbObject<'a> {
    list: &'static str,
    oid: String,
    class: &'a str,
    current_bytes: u64,
    records: u64,
    bytes: u64,
}

impl<'a> ZodbObject<'a> {
    pub(crate) fn new(list: &'static str, object: &'a ObjectUse) -> Self {
        Self {
            list,
            oid: object.oid.to_string(),
            class: &object.class,
            current_bytes: object.current_bytes,
            records: object.all.records,
            bytes: object.all.bytes,
        }
    }
}

/// What was written on a day.
#[derive(Serialize)]
pub(crate) struct ZodbDay {
    day: String,
    transactions: u64,
    bytes: u64,
}

impl ZodbDay {
    pub(crate) fn new(day: &DayUse) -> Self {
        Self {
            day: day.day.to_string(),
            transactions: day.transactions,
            bytes: day.bytes,
        }
    }
}

/// A reference, and why it is shown.
#[derive(Serialize)]
pub(crate) struct ZodbReference {
    why: &'static str,
    from: String,
    to: String,
}

impl ZodbReference {
    pub(crate) fn new(why: &'static str, from: Oid, to: Oid) -> Self {
        Self {
            why,
            from: from.to_string(),
            to: to.to_string(),
        }
    }
}

/// Why a scan ended before the file did.
fn imperfection(scan: &Scan) -> Option<String> {
    match &scan.end {
        ScanEnd::Imperfect(imperfection) => Some(imperfection.to_string()),
        _ => None,
    }
}

/// What `zodb reindex` did.
#[derive(Serialize)]
pub(crate) struct ZodbReindexed {
    index: &'static str,
    from: u64,
    position: u64,
    transactions: u64,
    records: u64,
    objects: u64,
    imperfect: Option<String>,
    written: Option<u64>,
    dry_run: bool,
}

impl ZodbReindexed {
    pub(crate) fn new(done: &Reindexed, dry_run: bool) -> Self {
        let scan = &done.scan;
        Self {
            index: match done.before {
                IndexState::Missing => "missing",
                IndexState::Unreadable(_) => "unreadable",
                IndexState::Insane => "insane",
                IndexState::Stale { .. } => "stale",
                IndexState::Current => "current",
            },
            from: done.from,
            position: scan.position,
            transactions: scan.transactions,
            records: scan.records,
            objects: scan.index.len() as u64,
            imperfect: imperfection(scan),
            written: done.written,
            dry_run,
        }
    }

    pub(crate) fn text(&self) -> String {
        let did = match (self.written, self.dry_run) {
            (Some(_), _) => "indexed",
            (None, true) => "would index",
            (None, false) => "left as it is:",
        };
        format!(
            "the index was {}; {did} {} ({} and {} read)",
            self.index,
            count(self.objects, "object", "objects"),
            count(self.transactions, "transaction", "transactions"),
            count(self.records, "record", "records"),
        )
    }
}

/// What `zodb check` found.
#[derive(Serialize)]
pub(crate) struct ZodbChecked {
    transactions: u64,
    records: u64,
    objects: u64,
    encoded: u64,
    indexed: Option<u64>,
    damages: u64,
    torn_end: bool,
}

impl ZodbChecked {
    pub(crate) fn new(checked: &Checked) -> Self {
        Self {
            transactions: checked.transactions,
            records: checked.records,
            objects: checked.objects,
            encoded: checked.encoded,
            indexed: checked.indexed,
            damages: checked.damages,
            torn_end: checked.has_torn_end,
        }
    }

    pub(crate) fn text(&self) -> String {
        let index = match self.indexed {
            Some(objects) => format!("{} of the index", count(objects, "object", "objects")),
            None => "there is no index".to_owned(),
        };
        format!(
            "checked {}, {}; {index}; {}",
            count(self.transactions, "transaction", "transactions"),
            count(self.records, "record", "records"),
            match self.damages {
                0 => "no damage".to_owned(),
                damages => format!("{} damaged", count(damages, "place is", "places are")),
            }
        )
    }
}

/// What `zodb analyze` counted.
#[derive(Serialize)]
pub(crate) struct ZodbAnalyzed {
    transactions: u64,
    objects: u64,
    current_records: u64,
    current_bytes: u64,
    old_records: u64,
    old_bytes: u64,
    imperfect: Option<String>,
}

impl ZodbAnalyzed {
    pub(crate) fn new(analysis: &Analysis) -> Self {
        Self {
            transactions: analysis.scan.transactions,
            objects: analysis.scan.index.len() as u64,
            current_records: analysis.current.records,
            current_bytes: analysis.current.bytes,
            old_records: analysis.old.records,
            old_bytes: analysis.old.bytes,
            imperfect: imperfection(&analysis.scan),
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "{} in {}; current: {}, old: {} in {}",
            count(self.objects, "object", "objects"),
            count(self.transactions, "transaction", "transactions"),
            size(self.current_bytes),
            size(self.old_bytes),
            count(self.old_records, "record", "records"),
        )
    }
}

/// What `zodb references` found.
#[derive(Serialize)]
pub(crate) struct ZodbReferenced {
    objects: u64,
    references: u64,
    weak: u64,
    foreign: u64,
    unknown: u64,
    dangling: u64,
    gone: u64,
    encoded: u64,
    damaged: u64,
    unreachable: u64,
    imperfect: Option<String>,
}

impl ZodbReferenced {
    pub(crate) fn new(references: &References) -> Self {
        let counts = references.counts();
        Self {
            objects: references.scan().index.len() as u64,
            references: counts.strong,
            weak: counts.weak,
            foreign: counts.foreign,
            unknown: counts.unknown,
            dangling: counts.dangling,
            gone: counts.gone,
            encoded: counts.encoded,
            damaged: counts.damaged,
            unreachable: references.unreachable(),
            imperfect: imperfection(references.scan()),
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "{}, {}; {} dangling; {} cannot be reached from the root",
            count(self.objects, "object", "objects"),
            count(self.references, "reference", "references"),
            grouped(self.dangling),
            count(self.unreachable, "object", "objects"),
        )
    }
}
