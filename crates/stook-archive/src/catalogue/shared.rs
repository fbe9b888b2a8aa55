//! Attributes that many entries share, each combination once.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

use stook_index::{Attributes, MemberKind};

/// What is usually the same for all files of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shared {
    pub(super) kind: MemberKind,
    pub(super) mode: u32,
    pub(super) uid: u64,
    pub(super) gid: u64,
    pub(super) uname: Box<[u8]>,
    pub(super) gname: Box<[u8]>,
    pub(super) is_sparse: bool,
    pub(super) has_xattrs: bool,
}

impl Shared {
    fn of(attributes: &Attributes<'_>) -> Self {
        Self {
            kind: attributes.kind,
            mode: attributes.mode,
            uid: attributes.uid,
            gid: attributes.gid,
            uname: attributes.uname.into(),
            gname: attributes.gname.into(),
            is_sparse: attributes.is_sparse,
            has_xattrs: attributes.has_xattrs,
        }
    }

    fn is_of(&self, attributes: &Attributes<'_>) -> bool {
        self.kind == attributes.kind
            && self.mode == attributes.mode
            && self.uid == attributes.uid
            && self.gid == attributes.gid
            && *self.uname == *attributes.uname
            && *self.gname == *attributes.gname
            && self.is_sparse == attributes.is_sparse
            && self.has_xattrs == attributes.has_xattrs
    }

    /// Returns the attributes that this stands for, and nothing of the rest.
    fn attributes(&self) -> Attributes<'_> {
        Attributes {
            kind: self.kind,
            mode: self.mode,
            uid: self.uid,
            gid: self.gid,
            uname: &self.uname,
            gname: &self.gname,
            is_sparse: self.is_sparse,
            has_xattrs: self.has_xattrs,
            ..Attributes::default()
        }
    }

    fn heap_bytes(&self) -> usize {
        size_of::<Self>() + self.uname.len() + self.gname.len()
    }
}

/// Gives each combination a number.
#[derive(Debug, Default)]
pub(super) struct SharedTable {
    list: Vec<Shared>,
    /// Numbers by hash: nothing is allocated to look one up.
    numbers: HashMap<u64, Vec<u32>>,
    hasher: RandomState,
    last: u32,
}

impl SharedTable {
    /// Returns the number of the attributes of a member, which are mostly those of the member before.
    pub(super) fn number(&mut self, attributes: &Attributes<'_>) -> u32 {
        if self.is(self.last, attributes) {
            return self.last;
        }
        let hash = self.hasher.hash_one((
            (attributes.kind, attributes.mode),
            (attributes.uid, attributes.gid),
            (attributes.uname, attributes.gname),
            (attributes.is_sparse, attributes.has_xattrs),
        ));
        let list = &self.list;
        let numbers = self.numbers.entry(hash).or_default();
        let is_it = |&&number: &&u32| list[number as usize].is_of(attributes);
        self.last = numbers.iter().find(is_it).copied().unwrap_or_else(|| {
            let number = u32::try_from(self.list.len()).expect("rows are fewer than 2^32");
            self.list.push(Shared::of(attributes));
            numbers.push(number);
            number
        });
        self.last
    }

    fn is(&self, number: u32, attributes: &Attributes<'_>) -> bool {
        let shared = self.list.get(number as usize);
        shared.is_some_and(|shared| shared.is_of(attributes))
    }

    /// Returns the numbers here of all combinations of another table.
    pub(super) fn merge(&mut self, other: &Self) -> Vec<u32> {
        let numbers = other.list.iter();
        numbers
            .map(|shared| self.number(&shared.attributes()))
            .collect()
    }

    pub(super) fn get(&self, number: u32) -> Option<&Shared> {
        self.list.get(number as usize)
    }

    /// Returns the list; what it takes to add to it is not needed any more.
    pub(super) fn into_list(self) -> Vec<Shared> {
        self.list
    }
}

/// Returns the bytes that a list takes.
pub(super) fn heap_bytes(list: &[Shared]) -> usize {
    list.iter().map(Shared::heap_bytes).sum()
}
