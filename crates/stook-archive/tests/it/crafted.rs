//! Archives as no honest program writes them: any member, any row.

use std::path::Path;

use stook_archive::{Dialect, Mtime};
use stook_index::{Config, Index, NewRow, Volume, VolumeId};
use stook_sys::Timestamp;
use stook_volume::{Header, Kind, encode, padding, trailer_len};

/// One member: its header and, for a file, its content.
pub(crate) struct Crafted {
    pub(crate) header: Header,
    pub(crate) content: Vec<u8>,
}

pub(crate) const SECONDS: i64 = 1_700_000_000;

impl Crafted {
    fn new(kind: Kind, name: &[u8]) -> Self {
        let header = Header {
            name: name.to_vec(),
            kind,
            mode: 0o644,
            uid: 0,
            gid: 0,
            mtime: Timestamp {
                seconds: SECONDS,
                nanoseconds: 0,
            },
            ..Header::default()
        };
        let content = Vec::new();
        Self { header, content }
    }

    pub(crate) fn file(name: impl AsRef<[u8]>, content: &[u8]) -> Self {
        let mut crafted = Self::new(Kind::File, name.as_ref());
        crafted.header.size = content.len() as u64;
        crafted.content = content.to_vec();
        crafted
    }

    pub(crate) fn symlink(name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Self {
        let mut crafted = Self::new(Kind::Symlink, name.as_ref());
        crafted.header.target = target.as_ref().to_vec();
        crafted
    }

    /// A hard link as zstash writes it: the content follows.
    pub(crate) fn hard_link(name: impl AsRef<[u8]>, target: impl AsRef<[u8]>) -> Self {
        let mut crafted = Self::file(name, b"own bytes");
        crafted.header.kind = Kind::HardLink;
        crafted.header.target = target.as_ref().to_vec();
        crafted
    }

    pub(crate) fn directory(name: impl AsRef<[u8]>) -> Self {
        let mut crafted = Self::new(Kind::Directory, name.as_ref());
        crafted.header.mode = 0o777;
        crafted
    }

    pub(crate) fn fifo(name: impl AsRef<[u8]>) -> Self {
        Self::new(Kind::Fifo, name.as_ref())
    }

    /// A further name of a file, as stook writes it.
    pub(crate) fn linked(mut self, first: impl AsRef<[u8]>) -> Self {
        self.header.link = Some(first.as_ref().to_vec());
        self
    }
}

/// Writes the members into the volume 000000 of a new archive, and an index that fits them.
pub(crate) fn write_archive(archive: &Path, dialect: Dialect, members: &[Crafted]) {
    write_archive_with(archive, dialect, members, |_| {});
}

/// As [`write_archive`]; `distort` may change each row.
pub(crate) fn write_archive_with(
    archive: &Path,
    dialect: Dialect,
    members: &[Crafted],
    distort: impl Fn(&mut NewRow<'_>),
) {
    std::fs::create_dir(archive).unwrap();
    let mut bytes = Vec::new();
    let mut rows = Vec::new();
    for Crafted { header, content } in members {
        let offset = bytes.len() as u64;
        encode(header, dialect, &mut bytes).unwrap();
        bytes.extend_from_slice(content);
        pad(&mut bytes, padding(content.len() as u64));
        let mut row = NewRow {
            name: &header.name,
            size: header.size,
            mtime: Mtime::from(header.mtime),
            md5: header.kind.has_content().then(|| md5(content)),
            offset,
        };
        distort(&mut row);
        rows.push(row);
    }
    let trailer = trailer_len(bytes.len() as u64);
    pad(&mut bytes, trailer);
    let id = VolumeId::plain(0);
    std::fs::write(archive.join(id.to_string()), &bytes).unwrap();
    let config = Config {
        hpss: "none".to_owned(),
        maxsize: 1 << 30,
        path: b"/nowhere".to_vec(),
    };
    let mut index = Index::create(archive.join("index.db"), &config).unwrap();
    let volume = Volume {
        id,
        size: bytes.len() as u64,
        md5: Some(md5(&bytes)),
    };
    index.commit_volume(&volume, rows, None).unwrap();
}

fn pad(bytes: &mut Vec<u8>, len: u64) {
    bytes.resize(bytes.len() + usize::try_from(len).unwrap(), 0);
}

fn md5(bytes: &[u8]) -> [u8; 16] {
    stook_md5::md5_many(&[bytes])[0]
}
