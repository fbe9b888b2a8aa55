//! The content of directories: in each block entries first, their names behind them; nothing crosses a block.
//!
//! ```text
//!   number of the inode 8 | place of the name 2 | kind 1 | 0 | ... | name name name
//! ```
//! Names ascend by their bytes, `.` and `..` among them: the kernel searches by halves.

use super::format::BLOCK_LEN;

/// Bytes of an entry without its name.
const ENTRY: usize = 12;

/// An entry of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named<'a, T> {
    pub(super) name: &'a [u8],
    pub(super) what: T,
}

/// Returns the bytes that a directory with these names takes; the last block counts as far as it is filled.
pub(super) fn content_len<T>(list: &[Named<'_, T>]) -> u64 {
    let mut len = 0;
    let mut rest = list;
    while !rest.is_empty() {
        let (count, filled) = block(rest);
        rest = &rest[count..];
        len += if rest.is_empty() { filled } else { BLOCK_LEN };
    }
    len as u64
}

/// Returns how many entries the first block takes, and how far they fill it.
fn block<T>(list: &[Named<'_, T>]) -> (usize, usize) {
    let mut filled = 0;
    for (count, named) in list.iter().enumerate() {
        let next = filled + ENTRY + named.name.len();
        if next > BLOCK_LEN {
            return (count, filled);
        }
        filled = next;
    }
    (list.len(), filled)
}

/// Returns the content: of each entry the number of the inode, and the kind.
pub(super) fn content(list: &[Named<'_, (u64, u8)>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = list;
    while !rest.is_empty() {
        let (count, _) = block(rest);
        let (here, behind) = rest.split_at(count);
        out.resize(out.len().next_multiple_of(BLOCK_LEN), 0);
        let mut name_at = count * ENTRY;
        for named in here {
            let (number, kind) = named.what;
            out.extend_from_slice(&number.to_le_bytes());
            let place = u16::try_from(name_at).expect("a block has 512 bytes");
            out.extend_from_slice(&place.to_le_bytes());
            out.extend_from_slice(&[kind, 0]);
            name_at += named.name.len();
        }
        for named in here {
            out.extend_from_slice(named.name);
        }
        rest = behind;
    }
    out
}

/// Adds `.` and `..` to names that ascend.
pub(super) fn with_dots<T>(list: &mut Vec<Named<'_, T>>, this: T, above: T) {
    for (name, what) in [(&b"."[..], this), (b"..", above)] {
        let place = list.partition_point(|named| named.name < name);
        list.insert(place, Named { name, what });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fill_blocks_and_dots_stand_among_them() {
        let names: Vec<Vec<u8>> = (0..100)
            .map(|n| format!("{n:03}-name").into_bytes())
            .collect();
        let mut list: Vec<Named<'_, (u64, u8)>> = names
            .iter()
            .map(|name| Named { name, what: (7, 1) })
            .collect();
        list.insert(
            0,
            Named {
                name: b"!first",
                what: (9, 1),
            },
        );
        with_dots(&mut list, (1, 2), (2, 2));
        assert_eq!(list[0].name, b"!first");
        assert_eq!((list[1].name, list[2].name), (&b"."[..], &b".."[..]));
        let bytes = content(&list);
        assert_eq!(bytes.len() as u64, content_len(&list));
        // Where the first name of each block begins says how many entries it has.
        let counts = bytes
            .chunks(BLOCK_LEN)
            .map(|block| usize::from(u16::from_le_bytes([block[8], block[9]])) / ENTRY);
        assert_eq!(counts.sum::<usize>(), list.len());
    }

    #[test]
    fn the_longest_names_fit() {
        let name = [b'x'; 255];
        let list = vec![
            Named {
                name: &name[..],
                what: (1, 1)
            };
            3
        ];
        assert_eq!(content_len(&list), 2 * 512 + 267);
        assert_eq!(content(&list).len(), 2 * 512 + 267);
    }
}
