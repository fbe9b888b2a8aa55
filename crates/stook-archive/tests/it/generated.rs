//! Indexes of many members that no volume has, for measurements and for what only shows in large archives.

use std::path::Path;

use stook_index::{
    Attributes, AttributesEncoder, Config, Index, IndexError, MemberKind, Mtime, NewRow, Volume,
    VolumeId, VolumeParts,
};
use stook_sys::Timestamp;

/// Members of one volume.
const VOLUME_MEMBERS: u64 = 300_000;

/// Files of a directory, as in `arc`.
const FILES: u64 = 49;

/// A file set as `arc`: directories of 49 files, sizes around 7 KiB, times to the nanosecond; the rest of its numbers follow from
/// the number of the member.
struct Generated {
    number: u64,
    name: Vec<u8>,
    offset: u64,
}

impl Generated {
    fn at(number: u64, offset: u64) -> Self {
        let directory = number / (FILES + 1);
        let name = match number % (FILES + 1) {
            0 => format!("part-{:03}/set-{directory:06}", directory / 100),
            file => {
                let part = directory / 100;
                let mixed = mixed(number) >> 40;
                format!("part-{part:03}/set-{directory:06}/file-{file:02}-{mixed:06x}.dat")
            }
        };
        let name = name.into_bytes();
        Self {
            number,
            name,
            offset,
        }
    }

    fn is_directory(&self) -> bool {
        self.number.is_multiple_of(FILES + 1)
    }

    fn size(&self) -> u64 {
        if self.is_directory() {
            return 0;
        }
        let mixed = mixed(self.number);
        21 + (mixed % 160) * (mixed >> 32 & 0xff)
    }

    fn end(&self) -> u64 {
        self.offset + 1536 + self.size().next_multiple_of(512)
    }

    fn mtime(&self) -> Timestamp {
        let mixed = mixed(self.number + 7);
        Timestamp {
            seconds: 1_650_000_000 + i64::try_from(mixed % 31_536_000).unwrap_or(0),
            nanoseconds: u32::try_from((mixed >> 20) % 1_000_000_000).unwrap_or(0),
        }
    }

    fn row(&self) -> NewRow<'_> {
        let mut md5 = [0; 16];
        md5[..8].copy_from_slice(&mixed(self.number).to_le_bytes());
        NewRow {
            name: &self.name,
            size: self.size(),
            mtime: Mtime::from(self.mtime()),
            md5: (!self.is_directory()).then_some(md5),
            offset: self.offset,
        }
    }

    fn attributes(&self) -> Attributes<'_> {
        let (kind, mode) = if self.is_directory() {
            (MemberKind::Directory, 0o755)
        } else {
            (MemberKind::File, 0o644)
        };
        Attributes {
            offset: self.offset,
            content: self.offset + 1536,
            kind,
            mode,
            uid: 1000,
            gid: 1000,
            uname: b"someone",
            gname: b"group",
            mtime: self.mtime(),
            ..Attributes::default()
        }
    }
}

fn mixed(number: u64) -> u64 {
    let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ mixed >> 29).wrapping_mul(0xd134_2543_de82_ef95)
}

/// Writes the index of an archive with so many members, as stook would, into a folder.
pub(crate) fn write_index(archive: &Path, members: u64) {
    let config = Config {
        hpss: "none".to_owned(),
        maxsize: 1 << 30,
        path: b"/nowhere".to_vec(),
    };
    let mut index = Index::create(archive.join("index.db"), &config).unwrap();
    let run = index.begin_run("create", Mtime(0)).unwrap();
    for number in 0..members.div_ceil(VOLUME_MEMBERS) {
        let first = number * VOLUME_MEMBERS;
        let last = members.min(first + VOLUME_MEMBERS);
        write_volume(&mut index, VolumeId::plain(number), first..last);
    }
    index.finish_run(run, Mtime(1), 0, []).unwrap();
}

fn write_volume(index: &mut Index, id: VolumeId, numbers: std::ops::Range<u64>) {
    let mut encoder = AttributesEncoder::default();
    let mut offset = 0;
    let mut members = Vec::new();
    for number in numbers {
        let member = Generated::at(number, offset);
        offset = member.end();
        encoder.push(&member.attributes());
        members.push(member);
    }
    let rows = members.iter().map(Generated::row);
    let made = || {
        let (size, md5) = (offset, None);
        Ok::<_, IndexError>(vec![Volume { id, size, md5 }])
    };
    let parts = VolumeParts {
        attributes: &encoder.take(),
        ..VolumeParts::default()
    };
    index
        .commit_volume_when(id, rows, parts, None, made)
        .unwrap();
}
