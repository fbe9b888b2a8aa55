//! What the walk keeps of a value: only what may become a class or a reference.

use crate::id::Oid;

/// Something on the stack.
///
/// All that a value has is one number of 64 bits: a value takes 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing of interest.
    Other,
    /// A string of one byte: the kind of a reference, perhaps.
    Letter(u64),
    /// A string of 8 bytes: an object, perhaps.
    Eight(u64),
    /// Another string.
    Text(Span),
    /// A string as Python would write it in a program.
    Quoted(Span),
    /// A class: the two lines, of module and name.
    Class(Span),
    /// A tuple that begins with a string of 8 bytes.
    EightTuple(u64),
    /// A pair whose parts are kept beside the stack: only in the first pickle of a record, which names the class.
    Pair(u64),
    /// An empty list.
    EmptyList,
    /// A list that has the kind of a reference and nothing else.
    KindList(u64),
    /// `["w", (oid,)]`, or `[oid]` of older programs.
    WeakList(u64),
    /// `["n", (database, oid)]` or `["m", (database, oid, class)]`.
    ForeignList,
    /// Another list.
    OtherList,
}

impl Value {
    /// The list with one value more; `None` if it is no list.
    pub(super) fn with(self, added: Self) -> Option<Self> {
        const WEAK: u64 = b'w' as u64;
        Some(match (self, added) {
            (Self::EmptyList, Self::Letter(kind)) => Self::KindList(kind),
            (Self::EmptyList, Self::Eight(oid)) | (Self::KindList(WEAK), Self::EightTuple(oid)) => {
                Self::WeakList(oid)
            }
            (Self::KindList(kind), _) if [b'n', b'm'].map(u64::from).contains(&kind) => {
                Self::ForeignList
            }
            (
                Self::EmptyList
                | Self::KindList(_)
                | Self::WeakList(_)
                | Self::ForeignList
                | Self::OtherList,
                _,
            ) => Self::OtherList,
            _ => return None,
        })
    }
}

/// Bits of the length of a span.
const LEN_BITS: u32 = 16;

/// Where a string is in the record, and how long: what may name a class is neither far off nor long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(u64);

impl Span {
    /// Returns the span; `None` if it is too long, or too far from the beginning.
    #[inline]
    pub(super) fn new(offset: u64, len: u64) -> Option<Self> {
        let fits = offset >> (64 - LEN_BITS) == 0 && len >> LEN_BITS == 0;
        fits.then_some(Self(offset << LEN_BITS | len))
    }

    pub(super) fn offset(self) -> u64 {
        self.0 >> LEN_BITS
    }

    pub(super) fn len(self) -> u64 {
        self.0 & ((1 << LEN_BITS) - 1)
    }
}

/// A reference to another object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reference {
    /// To an object of this database.
    Strong(Oid),
    /// The same, but it does not keep the object.
    Weak(Oid),
    /// To an object of another database.
    Foreign,
    /// Of a form that ZODB does not write.
    Unknown,
}

impl Reference {
    /// The reference that a persistent id is; pairs are looked into by the caller.
    #[inline]
    pub(super) fn of(value: Value) -> Self {
        match value {
            Value::Eight(oid) | Value::EightTuple(oid) => Self::Strong(Oid(oid)),
            Value::WeakList(oid) => Self::Weak(Oid(oid)),
            Value::ForeignList => Self::Foreign,
            _ => Self::Unknown,
        }
    }
}
