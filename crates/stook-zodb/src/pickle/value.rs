//! What the walk keeps of a value: only what may become a class or a reference.

use crate::id::Oid;

/// Something on the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing of interest.
    Other,
    /// A string of one byte: the kind of a reference, perhaps.
    Letter(u8),
    /// A string of 8 bytes: an object, perhaps.
    Eight(u64),
    /// Another string, where it is in the record.
    Text { offset: u64, len: u32 },
    /// A string as Python would write it in a program, where it is in the record.
    Quoted { offset: u64, len: u32 },
    /// A class: the two lines, of module and name, where they are in the record.
    Class { offset: u64, len: u32 },
    /// A tuple that begins with a string of 8 bytes.
    EightTuple(u64),
    /// A pair whose parts are kept beside the stack: only in the first pickle of a record, which names the class.
    Pair(u32),
    /// A list, as far as references have them.
    List(List),
}

/// The lists that references can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
    Empty,
    /// It has the kind of a reference and nothing else.
    Kind(u8),
    /// `["w", (oid,)]`, or `[oid]` of older programs.
    Weak(u64),
    /// `["n", (database, oid)]` or `["m", (database, oid, class)]`.
    Foreign,
    Other,
}

impl List {
    /// The list with one value more.
    pub(super) fn with(self, value: Value) -> Self {
        match (self, value) {
            (Self::Empty, Value::Letter(kind)) => Self::Kind(kind),
            (Self::Empty, Value::Eight(oid)) | (Self::Kind(b'w'), Value::EightTuple(oid)) => {
                Self::Weak(oid)
            }
            (Self::Kind(b'n' | b'm'), _) => Self::Foreign,
            _ => Self::Other,
        }
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
    /// The reference that a persistent id is; strings and pairs are looked into by the caller.
    pub(super) fn of(value: Value) -> Self {
        match value {
            Value::Eight(oid) | Value::EightTuple(oid) => Self::Strong(Oid(oid)),
            Value::List(List::Weak(oid)) => Self::Weak(Oid(oid)),
            Value::List(List::Foreign) => Self::Foreign,
            _ => Self::Unknown,
        }
    }
}
