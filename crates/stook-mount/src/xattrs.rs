//! Extended attributes: those of the header, and where a file lies in the archive.

use stook_archive::{Catalogue, EntryId};

/// Names of attributes that the mount adds; a header's own ones of these names are hidden.
const VOLUME: &[u8] = b"user.stook.volume";
const OFFSET: &[u8] = b"user.stook.offset";
const MD5: &[u8] = b"user.stook.md5";

const OWN: [&[u8]; 3] = [VOLUME, OFFSET, MD5];

/// Whether an attribute is known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Is(Vec<u8>),
    /// There is none of this name.
    Missing,
    /// The header cannot be read.
    Unknown,
}

/// Returns an attribute that is known without a header; `None` if it takes one.
pub(crate) fn value_in_memory(catalogue: &Catalogue, entry: EntryId, name: &[u8]) -> Option<Value> {
    if OWN.contains(&name) {
        let value = own_value(catalogue, entry, name);
        return Some(value.map_or(Value::Missing, Value::Is));
    }
    (!catalogue.may_have_xattrs(entry)).then_some(Value::Missing)
}

/// Returns an attribute. May wait.
pub(crate) fn value(catalogue: &Catalogue, entry: EntryId, name: &[u8]) -> Value {
    if let Some(value) = value_in_memory(catalogue, entry, name) {
        return value;
    }
    let Some(xattrs) = catalogue.xattrs(entry) else {
        return Value::Unknown;
    };
    let found = xattrs.into_iter().find(|xattr| xattr.0 == name);
    found.map_or(Value::Missing, |(_, value)| Value::Is(value))
}

/// Returns the names of the header's attributes, each with a NUL behind it; `None` if the header cannot be read. May wait,
/// unless there are none. The mount's own are not listed: a copy of a file is not to have them.
pub(crate) fn names(catalogue: &Catalogue, entry: EntryId) -> Option<Vec<u8>> {
    let mut names = Vec::new();
    for (name, _) in catalogue.xattrs(entry)? {
        if !OWN.contains(&&*name) {
            names.extend_from_slice(&name);
            names.push(0);
        }
    }
    Some(names)
}

fn own_value(catalogue: &Catalogue, entry: EntryId, name: &[u8]) -> Option<Vec<u8>> {
    let row = catalogue.row_of(entry)?;
    let text = match name {
        VOLUME => row.volume.to_string(),
        OFFSET => row.offset.to_string(),
        _ => hexadecimal(row.md5?),
    };
    Some(text.into_bytes())
}

fn hexadecimal(md5: [u8; 16]) -> String {
    md5.iter().map(|byte| format!("{byte:02x}")).collect()
}
