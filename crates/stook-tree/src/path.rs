//! Paths below the root of a tree: names with a slash in between; the root is the empty path.

use std::cmp::Ordering;

/// Returns the path of what is in a directory.
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() {
        name.to_vec()
    } else {
        [directory, b"/", name].concat()
    }
}

/// Splits a path into its directory and its last name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&byte| byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (&[], path),
    }
}

/// Returns true if a path is below a directory.
pub(crate) fn is_below(path: &[u8], directory: &[u8]) -> bool {
    match path.strip_prefix(directory) {
        Some(rest) if directory.is_empty() => !rest.is_empty(),
        Some(rest) => rest.first() == Some(&b'/'),
        None => false,
    }
}

/// Compares paths so that a directory stands right in front of all that is below it.
pub(crate) fn compare(a: &[u8], b: &[u8]) -> Ordering {
    // A name has no NUL in it.
    let rank = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    a.iter().map(rank).cmp(b.iter().map(rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_in_one_piece() {
        let sorted: [&[u8]; 7] = [b"", b"a", b"a/\x01", b"a/b", b"a/b/c", b"a-b", b"b"];
        assert!(sorted.is_sorted_by(|a, b| compare(a, b) == Ordering::Less));
        let below = |directory: &[u8]| -> Vec<bool> {
            sorted
                .iter()
                .map(|path| is_below(path, directory))
                .collect()
        };
        assert_eq!(below(b""), [false, true, true, true, true, true, true]);
        assert_eq!(below(b"a"), [false, false, true, true, true, false, false]);
    }
}
