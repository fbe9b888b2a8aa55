//! Builds volumes in memory, and shortens what a scan yields to lines that can be compared.

use stook_sys::Timestamp;
use stook_volume::{
    Depth, Dialect, Event, Header, Kind, ReadAt, Scanner, VolumeError, encode, padding, stored_len,
    trailer_len,
};

/// Returns a plain file's header.
pub(crate) fn file(name: &str, size: u64) -> Header {
    Header {
        name: name.into(),
        kind: Kind::File,
        mode: 0o644,
        uid: 1000,
        gid: 100,
        uname: b"ana".to_vec(),
        gname: b"users".to_vec(),
        size,
        mtime: Timestamp {
            seconds: 1_700_000_000,
            nanoseconds: 123_456_789,
        },
        ..Header::default()
    }
}

/// Returns bytes that are no header: a counter with a name's first letter.
pub(crate) fn content(seed: u8, len: u64) -> Vec<u8> {
    (0..len)
        .map(|n| seed.wrapping_add(u8::try_from(n % 251).unwrap()))
        .collect()
}

/// A volume being built.
#[derive(Clone, Default)]
pub(crate) struct Volume(pub(crate) Vec<u8>);

impl Volume {
    /// Appends a member and its stored data.
    pub(crate) fn add(&mut self, header: &Header, dialect: Dialect, data: &[u8]) -> u64 {
        let offset = self.0.len() as u64;
        encode(header, dialect, &mut self.0).unwrap();
        self.0.extend_from_slice(data);
        let padding = padding(stored_len(header, dialect));
        self.0
            .resize(self.0.len() + usize::try_from(padding).unwrap(), 0);
        offset
    }

    /// Appends a file with counted content.
    pub(crate) fn add_file(&mut self, name: &str, size: u64) -> u64 {
        self.add(
            &file(name, size),
            Dialect::Stook,
            &content(name.as_bytes()[0], size),
        )
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        let len = trailer_len(self.0.len() as u64);
        self.0
            .resize(self.0.len() + usize::try_from(len).unwrap(), 0);
        self.0
    }
}

/// Returns one line per event: `NAME@OFFSET`, `damage@OFFSET+LEN WHAT`, `end@OFFSET`.
pub(crate) fn lines(bytes: &[u8], depth: Depth) -> Vec<String> {
    lines_of(bytes, depth)
}

/// As [`lines`], of a volume anywhere.
pub(crate) fn lines_of(source: &(impl ReadAt + ?Sized), depth: Depth) -> Vec<String> {
    Scanner::new(source, 0)
        .with_depth(depth)
        .map(|event| line(&event.unwrap()))
        .collect()
}

fn line(event: &Event) -> String {
    match event {
        Event::Member(member) => format!("{}@{}", member.header.name.escape_ascii(), member.offset),
        Event::Damage {
            offset,
            len,
            reason,
        } => format!("damage@{offset}+{len} {}", what(reason)),
        Event::End { offset } => format!("end@{offset}"),
    }
}

pub(crate) fn what(error: &VolumeError) -> String {
    let text = format!("{error:?}");
    text.split([' ', '(']).next().unwrap().to_owned()
}
