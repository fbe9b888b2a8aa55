//! The rows that one task reads: their names taken apart, and their attributes beside them.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use stook_index::{
    Attributes, AttributesTable, IndexDamage, MemberKind, Members, Passed, RowRef, VolumeId,
};
use stook_tree::split;

use super::facts::{Facts, HAS_EXTRA, IS_DAMAGED};
use super::load::Versions;
use super::shared::SharedTable;
use crate::cause::Cause;
use crate::safe_path::safe_path;
use crate::survey::LONGEST_PATH;

/// Rows that a part has numbers for.
const MOST_ROWS: usize = u32::MAX as usize;

/// Rows while they are being read.
pub(super) struct Part<'a> {
    table: &'a AttributesTable,
    /// Members of the volume that follow the last one that was found.
    cursor: Option<(VolumeId, Members<'a>)>,
    versions: Versions,
    rows: PartRows,
}

/// Rows in the order of their ids.
#[derive(Debug, Default)]
pub(super) struct PartRows {
    /// Numbers of volumes, of shared attributes and of directories are those of this part. They are needed when the rest is
    /// not any more.
    pub(super) facts: Arc<Vec<Facts>>,
    /// The directory of each row.
    pub(super) directories: Vec<u32>,
    names: Vec<u8>,
    name_ends: Vec<usize>,
    pub(super) paths: Paths,
    pub(super) volumes: Volumes,
    pub(super) shared: SharedTable,
    /// Ascending by row.
    extras: Vec<(u32, Extra)>,
    extra_bytes: Vec<u8>,
    pub(super) bad_names: Vec<BadName>,
    /// Why a row is flagged as damaged.
    pub(super) damages: Vec<(u32, IndexDamage)>,
    /// About rows without a name.
    pub(super) unreadable: Vec<IndexDamage>,
    /// Rows that were passed over, because there are more than can be numbered.
    beyond: usize,
}

/// What few rows have.
#[derive(Debug, Default, Clone)]
struct Extra {
    target: Range<usize>,
    link: Range<usize>,
    raw_name: Range<usize>,
    device: (u32, u32),
}

/// What few rows have, as bytes; empty for what a row has not.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExtraRef<'p> {
    /// Where a symbolic link points.
    pub(super) target: &'p [u8],
    /// The name whose file this is.
    pub(super) link: &'p [u8],
    /// The name as the row has it, where it is not the path.
    pub(super) raw_name: &'p [u8],
    pub(super) device: (u32, u32),
}

/// A row whose name cannot be shown.
#[derive(Debug)]
pub(super) struct BadName {
    pub(super) row: i64,
    pub(super) name: Vec<u8>,
    pub(super) cause: Cause,
}

impl<'a> Part<'a> {
    /// Returns one for about so many rows.
    pub(super) fn new(table: &'a AttributesTable, rows: usize, versions: Versions) -> Self {
        Self {
            table,
            cursor: None,
            versions,
            rows: PartRows {
                facts: Arc::new(Vec::with_capacity(rows)),
                directories: Vec::with_capacity(rows),
                name_ends: Vec::with_capacity(rows),
                ..PartRows::default()
            },
        }
    }

    pub(super) fn into_rows(self) -> PartRows {
        self.rows
    }

    pub(super) fn take(&mut self, passed: Passed<'_>) {
        if self.rows.facts.len() >= MOST_ROWS {
            self.rows.beyond += 1;
            return;
        }
        match passed {
            Passed::Row(row) => self.add(&row, None),
            Passed::Damaged(row, damage) => self.add(&row, Some(damage)),
            Passed::Unreadable(damage) => self.rows.unreadable.push(damage),
        }
    }

    fn add(&mut self, row: &RowRef<'_>, damage: Option<IndexDamage>) {
        let attributes = match &damage {
            None => self.attributes(row.volume, row.offset),
            Some(_) => None,
        };
        let attributes = attributes.as_ref();
        if self.versions == Versions::All {
            return self.add_version(row, attributes, damage);
        }
        if let Some(name) = self.rows.paths.plain_in_last(row.name) {
            let directory = self.rows.paths.last_number;
            self.rows.push(row, (directory, name), attributes, damage);
            return;
        }
        match clean(row.name) {
            Ok(path) => {
                let (directory, name) = split(&path);
                let directory = self.rows.paths.number(directory);
                self.rows.push(row, (directory, name), attributes, damage);
                if *path != *row.name {
                    self.rows.add_raw_name(row.name);
                }
            }
            Err(cause) => self.rows.bad_names.push(BadName {
                row: row.id.0,
                name: row.name.to_vec(),
                cause,
            }),
        }
    }

    /// Adds a file as one of several below its name.
    fn add_version(
        &mut self,
        row: &RowRef<'_>,
        attributes: Option<&Attributes<'_>>,
        damage: Option<IndexDamage>,
    ) {
        if row.md5.is_none() {
            return;
        }
        let path = clean(row.name).and_then(|path| {
            let version = [&*path, b"/row-", row.id.0.to_string().as_bytes()].concat();
            // With the number it may have become too long.
            clean(&version).map(Cow::into_owned)
        });
        match path {
            Ok(path) => {
                let (directory, name) = split(&path);
                let directory = self.rows.paths.number(directory);
                self.rows.push(row, (directory, name), attributes, damage);
                self.rows.add_raw_name(row.name);
            }
            Err(cause) => self.rows.bad_names.push(BadName {
                row: row.id.0,
                name: row.name.to_vec(),
                cause,
            }),
        }
    }

    /// Rows of a volume come mostly in the order of their offsets, as its blocks have them.
    fn attributes(&mut self, volume: VolumeId, offset: u64) -> Option<Attributes<'a>> {
        let is_next = |(held, members): &(VolumeId, Members<'_>)| {
            *held == volume && members.next_offset() == Some(offset)
        };
        if !self.cursor.as_ref().is_some_and(is_next) {
            let members = self.table.members_from(volume, offset);
            self.cursor = members.map(|members| (volume, members));
        }
        self.cursor.as_mut()?.1.next()
    }
}

impl PartRows {
    fn push(
        &mut self,
        row: &RowRef<'_>,
        (directory, name): (u32, &[u8]),
        attributes: Option<&Attributes<'_>>,
        damage: Option<IndexDamage>,
    ) {
        self.directories.push(directory);
        self.names.extend_from_slice(name);
        self.name_ends.push(self.names.len());
        let mut facts = Facts::of_row(row, self.volumes.number(row.volume));
        let number = u32::try_from(self.facts.len()).expect("a part has fewer than 2^32 rows");
        if let Some(attributes) = attributes {
            facts.add(attributes, self.shared.number(attributes));
            let extra = self.extra_of(attributes);
            if !extra.is_empty() {
                facts.flags |= HAS_EXTRA;
                self.extras.push((number, extra));
            }
        }
        if let Some(damage) = damage {
            facts.flags |= IS_DAMAGED;
            self.damages.push((number, damage));
        }
        Arc::make_mut(&mut self.facts).push(facts);
    }

    /// Keeps the name of the last row, which is not its path.
    fn add_raw_name(&mut self, name: &[u8]) {
        let raw_name = self.keep(name);
        let Some((last, number)) = Arc::make_mut(&mut self.facts)
            .last_mut()
            .zip(self.directories.len().checked_sub(1))
        else {
            return;
        };
        if last.has(HAS_EXTRA)
            && let Some((_, extra)) = self.extras.last_mut()
        {
            extra.raw_name = raw_name;
            return;
        }
        last.flags |= HAS_EXTRA;
        let number = u32::try_from(number).expect("a part has fewer than 2^32 rows");
        let extra = Extra {
            raw_name,
            ..Extra::default()
        };
        self.extras.push((number, extra));
    }

    fn extra_of(&mut self, attributes: &Attributes<'_>) -> Extra {
        let Attributes { target, link, .. } = attributes;
        let (target, link) = match (attributes.kind, link) {
            // zstash's hard links are files with a first name, too.
            (MemberKind::HardLink, _) => (&b""[..], *target),
            (_, Some(link)) => (*target, *link),
            (_, None) => (*target, &b""[..]),
        };
        Extra {
            target: self.keep(target),
            link: self.keep(link),
            raw_name: 0..0,
            device: attributes.device,
        }
    }

    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        if bytes.is_empty() {
            return 0..0;
        }
        let start = self.extra_bytes.len();
        self.extra_bytes.extend_from_slice(bytes);
        start..self.extra_bytes.len()
    }

    /// Returns the number of rows, those that were passed over included.
    pub(super) fn len(&self) -> usize {
        self.facts.len() + self.beyond
    }

    /// Returns a row's own name, without its directory.
    pub(super) fn name(&self, row: u32) -> &[u8] {
        let row = row as usize;
        let start = match row {
            0 => 0,
            row => self.name_ends[row - 1],
        };
        &self.names[start..self.name_ends[row]]
    }

    /// Returns the bytes of all names, directories without rows included.
    pub(super) fn name_bytes(&self) -> usize {
        self.names.len()
            + self
                .paths
                .numbers
                .keys()
                .map(|path| path.len())
                .sum::<usize>()
    }

    /// Returns the path of a row.
    pub(super) fn path(&self, row: u32) -> Vec<u8> {
        let directory = self.paths.list()[self.directories[row as usize] as usize];
        match directory {
            b"" => self.name(row).to_vec(),
            directory => [directory, self.name(row)].join(&b'/'),
        }
    }

    /// Returns what few rows have, for a row that is flagged so.
    pub(super) fn extra(&self, row: u32) -> Option<ExtraRef<'_>> {
        let place = self.extras.binary_search_by_key(&row, |extra| extra.0);
        let extra = &self.extras[place.ok()?].1;
        let bytes = |range: &Range<usize>| &self.extra_bytes[range.clone()];
        Some(ExtraRef {
            target: bytes(&extra.target),
            link: bytes(&extra.link),
            raw_name: bytes(&extra.raw_name),
            device: extra.device,
        })
    }

    /// Returns the name of a row if it is not the path; else nothing.
    pub(super) fn raw_name(&self, row: u32) -> &[u8] {
        let extra = self.facts[row as usize]
            .has(HAS_EXTRA)
            .then(|| self.extra(row));
        extra.flatten().map_or(b"", |extra| extra.raw_name)
    }

    pub(super) fn damage(&self, row: u32) -> Option<&IndexDamage> {
        let place = self.damages.binary_search_by_key(&row, |damage| damage.0);
        Some(&self.damages[place.ok()?].1)
    }
}

impl Extra {
    fn is_empty(&self) -> bool {
        self.target.is_empty()
            && self.link.is_empty()
            && self.raw_name.is_empty()
            && self.device == (0, 0)
    }
}

/// The directories of a part, each with a number. Rows of one directory mostly follow each other.
#[derive(Debug)]
pub(super) struct Paths {
    numbers: HashMap<Box<[u8]>, u32>,
    last: Vec<u8>,
    last_number: u32,
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            numbers: HashMap::from([(Box::default(), 0)]),
            last: Vec::new(),
            last_number: 0,
        }
    }
}

impl Paths {
    /// Returns the name in the directory of the row before, if it is a plain one there: so are most, in one pass over it.
    fn plain_in_last<'n>(&self, name: &'n [u8]) -> Option<&'n [u8]> {
        let own = match &self.last[..] {
            b"" => name,
            last => name.strip_prefix(last)?.strip_prefix(b"/")?,
        };
        let is_plain = is_component(own) && !own.contains(&b'/') && name.len() <= LONGEST_PATH;
        is_plain.then_some(own)
    }

    fn number(&mut self, directory: &[u8]) -> u32 {
        if directory == self.last {
            return self.last_number;
        }
        self.last.clear();
        self.last.extend_from_slice(directory);
        self.last_number = match self.numbers.get(directory) {
            Some(number) => *number,
            None => {
                let number = u32::try_from(self.numbers.len()).expect("fewer than rows");
                self.numbers.insert(directory.into(), number);
                number
            }
        };
        self.last_number
    }

    /// Returns the directories in the order of their numbers.
    pub(super) fn list(&self) -> Vec<&[u8]> {
        let mut list: Vec<&[u8]> = vec![b""; self.numbers.len()];
        for (path, number) in &self.numbers {
            list[*number as usize] = path;
        }
        list
    }
}

/// The volumes of a part, each with a number. Rows of one volume mostly follow each other.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    pub(super) list: Vec<VolumeId>,
    numbers: HashMap<VolumeId, u32>,
    last: Option<(VolumeId, u32)>,
}

impl Volumes {
    pub(super) fn number(&mut self, volume: VolumeId) -> u32 {
        if let Some((last, number)) = self.last
            && last == volume
        {
            return number;
        }
        let number = *self.numbers.entry(volume).or_insert_with(|| {
            self.list.push(volume);
            u32::try_from(self.list.len() - 1).expect("fewer than rows")
        });
        self.last = Some((volume, number));
        number
    }
}

/// Returns the path that a name stands for, which is mostly itself; or why it stands for none.
fn clean(name: &[u8]) -> Result<Cow<'_, [u8]>, Cause> {
    let (directory, own) = split(name);
    let mut above = directory.split(|&byte| byte == b'/');
    let is_plain = name.len() <= LONGEST_PATH
        && name.first() != Some(&b'/')
        && is_component(own)
        && (directory.is_empty() || above.all(is_component));
    if is_plain {
        return Ok(Cow::Borrowed(name));
    }
    clean_path(name).map(Cow::Owned)
}

/// Returns the path that a name stands for where `extract` would put it: without `.` and empty components.
///
/// # Errors
/// Why `extract` would refuse it.
pub fn clean_path(name: &[u8]) -> Result<Vec<u8>, Cause> {
    let path = safe_path(name)?;
    if path.contains(&0) {
        return Err(Cause::NulInName);
    }
    Ok(path)
}

fn is_component(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_for_the_paths_that_extract_makes_of_them() {
        let mut paths = Paths::default();
        for (name, path) in [
            (&b"a"[..], &b"a"[..]),
            (b"a/b", b"a/b"),
            (b"a//b", b"a/b"),
            (b"./a/./b/", b"a/b"),
            (b"a/...", b"a/..."),
            (b"a/b", b"a/b"),
        ] {
            let clean = clean(name).unwrap();
            assert_eq!(*clean, *path);
            paths.number(split(&clean).0);
        }
        assert_eq!(paths.list(), [&b""[..], b"a"]);
        for name in [
            &b""[..],
            b".",
            b"/",
            b"/a",
            b"..",
            b"a/../b",
            b"a\0b",
            b"a\0/b",
            &[b'x'; 70_000],
        ] {
            assert!(clean(name).is_err(), "{}", name.escape_ascii());
        }
        // The directory of the row before is not looked at again, the name is.
        assert_eq!(paths.number(b"a"), 1);
        assert_eq!(paths.plain_in_last(b"a/x"), Some(&b"x"[..]));
        for name in [
            &b"a/.."[..],
            b"a/x\0",
            b"a/",
            b"a//x",
            b"a/x/y",
            b"ab/x",
            b"a",
            b"x",
        ] {
            assert_eq!(paths.plain_in_last(name), None, "{}", name.escape_ascii());
        }
        paths.number(b"");
        assert_eq!(paths.plain_in_last(b"x"), Some(&b"x"[..]));
        assert_eq!(paths.plain_in_last(b"/x"), None);
    }
}
