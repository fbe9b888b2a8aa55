//! From rows to a tree: which rows count, and in what order their entries come.
//!
//! ```text
//!   rows of all parts ──by directory──> items of each directory ──sort by name, side by side──> the newest of each name
//!   directories ──────by parent───────>      │
//!                                            └── from the root downwards, level by level ──> entries
//! ```
//! Directories are numbered so that each comes behind its parent. A directory without a row exists only while something in it
//! does.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Mutex;

use stook_index::{MemberKind, RowId};
use stook_pool::{Jobs, WorkerPool};
use stook_tree::split;

use super::directories::Directories;
use super::facts::{HAS_MD5, IS_DAMAGED, NO_ATTRIBUTES};
use super::part::{PartRows, clean_path};
use crate::mutex::lock;

/// A row by its part and its place in it, or a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item(u64);

const IS_DIRECTORY: u64 = 1 << 63;
/// The item before this directory is a row of the same name.
const FOLLOWS_ROW: u64 = 1 << 62;

impl Item {
    /// No row: a directory that none is about.
    pub(super) const NONE: Self = Self(u64::MAX);

    fn row(part: usize, row: u32) -> Self {
        Self((part as u64) << 32 | u64::from(row))
    }

    fn directory(number: u32) -> Self {
        Self(IS_DIRECTORY | u64::from(number))
    }

    fn is_directory(self) -> bool {
        self.0 & IS_DIRECTORY != 0
    }

    fn follows_row(self) -> bool {
        self.0 & FOLLOWS_ROW != 0
    }

    #[expect(clippy::cast_possible_truncation, reason = "the lower half is meant")]
    fn low(self) -> u32 {
        self.0 as u32
    }

    /// Returns the part of a row, and its place there; not to be asked of a directory.
    pub(super) fn place(self) -> (usize, u32) {
        let part = usize::try_from(self.0 >> 32).expect("parts are fewer than rows");
        (part, self.low())
    }
}

/// Entries in their order: the root, its children, then the children of each of these, and so on.
#[derive(Debug, Default)]
pub(super) struct Arranged {
    /// The row of each entry, or [`Item::NONE`].
    pub(super) rows: Vec<Item>,
    /// The directory of each entry; [`NO_DIRECTORY`] for those that have none below them.
    pub(super) directories: Vec<u32>,
    pub(super) parents: Vec<u32>,
    /// The first child of each entry; where the first child of the next entry is, its children end.
    pub(super) first_children: Vec<u32>,
    /// Rows that are newest, and have a value that makes no sense.
    pub(super) damaged: Vec<Item>,
    /// Rows of files whose names are those of directories.
    pub(super) shadowed: Vec<Item>,
}

pub(super) const NO_DIRECTORY: u32 = u32::MAX;

/// A name that is deleted.
#[derive(Debug)]
pub(super) struct Deletion {
    path: Vec<u8>,
    /// The name as it is recorded, if it is not the path: only rows of that very name are hidden.
    raw_name: Vec<u8>,
    /// The last row that is hidden.
    last: i64,
}

impl Deletion {
    /// Returns the deletion of a name; `None` if it stands for no path.
    pub(super) fn of(name: Vec<u8>, last: RowId) -> Option<Self> {
        let path = clean_path(&name).ok()?;
        let raw_name = if path == name { Vec::new() } else { name };
        Some(Self {
            path,
            raw_name,
            last: last.0,
        })
    }
}

/// Deletions by directory, each with the name in it, ascending.
type Deleted<'d> = HashMap<u32, Vec<(&'d [u8], &'d Deletion)>>;

/// The deletions of names that have a directory.
fn deleted_of<'d>(directories: &Directories<'_>, deletions: &'d [Deletion]) -> Deleted<'d> {
    let mut deleted = Deleted::new();
    for deletion in deletions {
        let (directory, name) = split(&deletion.path);
        if let Some(number) = directories.find(directory) {
            deleted.entry(number).or_default().push((name, deletion));
        }
    }
    for names in deleted.values_mut() {
        names.sort_unstable_by_key(|(name, _)| *name);
    }
    deleted
}

/// Arranges the rows of all parts. It ends early, with nothing, once `is_interrupted` is true.
///
/// # Cost
/// 8 bytes a row for the sort and 16 an entry for the result. Directories are sorted side by side, but each by one worker.
pub(super) fn arrange(
    parts: &[PartRows],
    (directories, of_parts): (&Directories<'_>, &[Vec<u32>]),
    deletions: &[Deletion],
    jobs: Jobs,
    is_interrupted: &(dyn Fn() -> bool + Sync),
) -> Arranged {
    let (mut items, starts) = items_of(parts, directories, of_parts);
    let deleted = deleted_of(directories, deletions);
    let mut kept = vec![Kept::default(); directories.len()];
    let damaged = Mutex::new(Vec::new());
    let chooser = Chooser {
        parts,
        directories,
        deleted: &deleted,
        damaged: &damaged,
    };
    let tasks = cut(&mut items, &starts, &mut kept);
    WorkerPool::new("arrange", jobs)
        .until(is_interrupted)
        .for_each(tasks.into_iter(), |task| chooser.run(task));
    if is_interrupted() {
        return Arranged::default();
    }
    let is_live = live(directories, &kept);
    let chosen = Chosen {
        parts,
        items: &items,
        starts: &starts,
        kept: &kept,
        is_live: &is_live,
    };
    let mut damaged = std::mem::take(&mut *lock(&damaged));
    damaged.sort_unstable_by_key(|item: &Item| item.0);
    Arranged {
        damaged,
        ..chosen.entries()
    }
}

/// Returns rows and directories by the directory they are in, and where those of each directory begin. Rows are in the order
/// of their ids.
fn items_of(
    parts: &[PartRows],
    directories: &Directories<'_>,
    of_parts: &[Vec<u32>],
) -> (Vec<Item>, Vec<usize>) {
    let mut starts = vec![0; directories.len() + 1];
    for (part, numbers) in parts.iter().zip(of_parts) {
        for &directory in &part.directories {
            starts[numbers[directory as usize] as usize + 1] += 1;
        }
    }
    let below_root = || directories.list.iter().enumerate().skip(1);
    for (_, directory) in below_root() {
        starts[directory.parent as usize + 1] += 1;
    }
    for number in 1..starts.len() {
        starts[number] += starts[number - 1];
    }
    let mut items = vec![Item(0); starts[directories.len()]];
    let mut next = starts.clone();
    let mut put = |directory: u32, item| {
        let next = &mut next[directory as usize];
        items[*next] = item;
        *next += 1;
    };
    for (part, (rows, numbers)) in parts.iter().zip(of_parts).enumerate() {
        for (row, &directory) in (0..).zip(&rows.directories) {
            put(numbers[directory as usize], Item::row(part, row));
        }
    }
    for (number, directory) in below_root() {
        let number = u32::try_from(number).unwrap_or(NO_DIRECTORY);
        put(directory.parent, Item::directory(number));
    }
    (items, starts)
}

/// What is left of a directory.
#[derive(Debug, Default, Clone, Copy)]
struct Kept {
    items: u32,
    has_rows: bool,
}

/// Consecutive directories, and their items.
struct Task<'a> {
    first: u32,
    starts: &'a [usize],
    items: &'a mut [Item],
    kept: &'a mut [Kept],
}

/// Items in one task, unless a directory has more: a millisecond of work.
const ITEMS_A_TASK: usize = 1 << 13;

fn cut<'a>(
    mut items: &'a mut [Item],
    starts: &'a [usize],
    mut kept: &'a mut [Kept],
) -> Vec<Task<'a>> {
    let mut tasks = Vec::new();
    let mut first = 0;
    while !kept.is_empty() {
        let enough = starts[first] + ITEMS_A_TASK;
        let end = starts.partition_point(|&start| start < enough);
        let end = end.clamp(first + 1, starts.len() - 1);
        let (own, other) = items.split_at_mut(starts[end] - starts[first]);
        let (own_kept, other_kept) = kept.split_at_mut(end - first);
        tasks.push(Task {
            first: u32::try_from(first).unwrap_or(NO_DIRECTORY),
            starts: &starts[first..=end],
            items: own,
            kept: own_kept,
        });
        (items, kept, first) = (other, other_kept, end);
    }
    tasks
}

/// Chooses the newest row of each name.
struct Chooser<'a> {
    parts: &'a [PartRows],
    directories: &'a Directories<'a>,
    deleted: &'a Deleted<'a>,
    damaged: &'a Mutex<Vec<Item>>,
}

impl Chooser<'_> {
    fn run(&self, task: Task<'_>) {
        let Task {
            first,
            starts,
            items,
            kept,
        } = task;
        for (number, (kept, ends)) in (first..).zip(kept.iter_mut().zip(starts.windows(2))) {
            let items = &mut items[ends[0] - starts[0]..ends[1] - starts[0]];
            *kept = self.choose(number, items);
        }
    }

    /// Sorts the items of a directory by name, and moves those that count to the front.
    fn choose(&self, directory: u32, items: &mut [Item]) -> Kept {
        // Stable: rows of a name stay in the order of their ids, a directory comes behind them.
        items.sort_by(|&a, &b| self.name(a).cmp(self.name(b)));
        let deleted = self.deleted.get(&directory);
        let (mut count, mut kept) = (0, Kept::default());
        let mut next = 0;
        while next < items.len() {
            let name = self.name(items[next]);
            let same = items[next..].iter();
            let end = next + same.take_while(|&&item| self.name(item) == name).count();
            let (rows, directory) = match items[end - 1] {
                last if last.is_directory() => (next..end - 1, Some(last)),
                _ => (next..end, None),
            };
            let row = self.newest(&items[rows], name, deleted);
            if let Some(row) = row {
                items[count] = row;
                count += 1;
                kept.has_rows = true;
            }
            if let Some(Item(directory)) = directory {
                let follows = if row.is_some() { FOLLOWS_ROW } else { 0 };
                items[count] = Item(directory | follows);
                count += 1;
            }
            next = end;
        }
        kept.items = u32::try_from(count).unwrap_or(u32::MAX);
        kept
    }

    /// Returns the newest row of a path that is not deleted, if it makes sense. Rows are in the order of their ids.
    fn newest(
        &self,
        rows: &[Item],
        name: &[u8],
        deleted: Option<&Vec<(&[u8], &Deletion)>>,
    ) -> Option<Item> {
        let is_deleted = |row: &Item| {
            deleted.is_some_and(|deleted| {
                let first = deleted.partition_point(|&(other, _)| other < name);
                let mut of_name = deleted[first..].iter().take_while(|named| named.0 == name);
                of_name.any(|(_, deletion)| self.is_hidden(*row, deletion))
            })
        };
        let newest = rows.iter().rev().find(|row| !is_deleted(row)).copied()?;
        let (part, place) = newest.place();
        if self.parts[part].facts[place as usize].has(IS_DAMAGED) {
            lock(self.damaged).push(newest);
            return None;
        }
        Some(newest)
    }

    fn is_hidden(&self, row: Item, deletion: &Deletion) -> bool {
        let (part, place) = row.place();
        let part = &self.parts[part];
        part.facts[place as usize].row <= deletion.last && part.raw_name(place) == deletion.raw_name
    }

    fn name(&self, item: Item) -> &[u8] {
        if item.is_directory() {
            return self.directories.name(item.low());
        }
        let (part, row) = item.place();
        self.parts[part].name(row)
    }
}

/// Returns which directories have a row below them.
fn live(directories: &Directories<'_>, kept: &[Kept]) -> Vec<bool> {
    let mut is_live: Vec<bool> = kept.iter().map(|kept| kept.has_rows).collect();
    for number in (1..is_live.len()).rev() {
        if is_live[number] {
            is_live[directories.list[number].parent as usize] = true;
        }
    }
    is_live
}

/// The items that count, in their directories.
struct Chosen<'a> {
    parts: &'a [PartRows],
    items: &'a [Item],
    starts: &'a [usize],
    kept: &'a [Kept],
    is_live: &'a [bool],
}

impl Chosen<'_> {
    fn entries(&self) -> Arranged {
        let rows = self.items.len();
        let mut arranged = Arranged {
            rows: Vec::with_capacity(rows + 1),
            directories: Vec::with_capacity(rows + 1),
            parents: Vec::with_capacity(rows + 1),
            first_children: Vec::with_capacity(rows + 2),
            ..Arranged::default()
        };
        arranged.push(0, Item::NONE, 0);
        let mut entry = 0;
        while entry < arranged.rows.len() {
            let next = arranged.next();
            arranged.first_children.push(next);
            let directory = arranged.directories[entry];
            if directory != NO_DIRECTORY {
                let parent = u32::try_from(entry).unwrap_or(u32::MAX);
                self.push_children(parent, directory, &mut arranged);
            }
            entry += 1;
        }
        let next = arranged.next();
        arranged.first_children.push(next);
        arranged
    }

    fn children(&self, directory: u32) -> &[Item] {
        let start = self.starts[directory as usize];
        let children: Range<usize> = start..start + self.kept[directory as usize].items as usize;
        &self.items[children]
    }

    fn push_children(&self, parent: u32, directory: u32, arranged: &mut Arranged) {
        let children = self.children(directory);
        for (at, &item) in children.iter().enumerate() {
            let below = children.get(at + 1);
            let below = below.filter(|below| below.is_directory() && below.follows_row());
            let is_live = |item: &Item| self.is_live[item.low() as usize];
            match (item.is_directory(), below.filter(|below| is_live(below))) {
                // With the row before it.
                (true, _) if item.follows_row() || !is_live(&item) => {}
                (true, _) => arranged.push(parent, Item::NONE, item.low()),
                (false, None) => arranged.push(parent, item, NO_DIRECTORY),
                (false, Some(below)) if self.may_be_directory(item) => {
                    arranged.push(parent, item, below.low());
                }
                (false, Some(below)) => {
                    arranged.shadowed.push(item);
                    arranged.push(parent, Item::NONE, below.low());
                }
            }
        }
    }

    /// Returns false if a row is known to be that of something else.
    fn may_be_directory(&self, row: Item) -> bool {
        let (part, place) = row.place();
        let rows = &self.parts[part];
        let facts = &rows.facts[place as usize];
        match facts.shared {
            NO_ATTRIBUTES => !facts.has(HAS_MD5),
            number => {
                let shared = rows.shared.get(number);
                shared.is_some_and(|shared| shared.kind == MemberKind::Directory)
            }
        }
    }
}

impl Arranged {
    fn push(&mut self, parent: u32, row: Item, directory: u32) {
        self.rows.push(row);
        self.directories.push(directory);
        self.parents.push(parent);
    }

    fn next(&self) -> u32 {
        u32::try_from(self.rows.len()).unwrap_or(u32::MAX)
    }
}
