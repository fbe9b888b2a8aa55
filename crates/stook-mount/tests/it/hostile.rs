//! Names that no honest program writes: left out or settled, and never in the way of others.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stook_archive::{Archive, CatalogueOptions, Mtime, OpenOptions, Silent};
use stook_index::{Config, Index, NewRow, Volume, VolumeId};
use stook_mount::MountOptions;
use stook_sys::Timestamp;
use stook_testkit::TempDir;
use stook_volume::{Header, Kind, encode, padding, trailer_len};

use crate::scene::{Mount, has_fuse};

/// Writes files, each with its name as content, into the volume of a new archive.
fn write_archive(archive: &Path, names: &[&[u8]]) {
    fs::create_dir(archive).unwrap();
    let (mut bytes, mut rows) = (Vec::new(), Vec::new());
    let mtime = Timestamp {
        seconds: 1_700_000_000,
        nanoseconds: 0,
    };
    for name in names {
        let in_header = name
            .iter()
            .map(|byte| if *byte == 0 { b'_' } else { *byte });
        let header = Header {
            name: in_header.collect(),
            kind: Kind::File,
            mode: 0o644,
            size: name.len() as u64,
            mtime,
            ..Header::default()
        };
        let offset = bytes.len() as u64;
        encode(&header, stook_archive::Dialect::Stook, &mut bytes).unwrap();
        bytes.extend_from_slice(name);
        pad(&mut bytes, padding(name.len() as u64));
        rows.push(NewRow {
            name,
            size: name.len() as u64,
            mtime: Mtime::from(mtime),
            md5: Some(stook_md5::md5_many(&[name])[0]),
            offset,
        });
    }
    let trailer = trailer_len(bytes.len() as u64);
    pad(&mut bytes, trailer);
    let id = VolumeId::plain(0);
    fs::write(archive.join(id.to_string()), &bytes).unwrap();
    let config = Config {
        hpss: "none".to_owned(),
        maxsize: 1 << 30,
        path: b"/nowhere".to_vec(),
    };
    let mut index = Index::create(archive.join("index.db"), &config).unwrap();
    let volume = Volume {
        id,
        size: bytes.len() as u64,
        md5: None,
    };
    index.commit_volume(&volume, rows, None).unwrap();
}

fn pad(bytes: &mut Vec<u8>, len: u64) {
    bytes.resize(bytes.len() + usize::try_from(len).unwrap(), 0);
}

fn names_in(directory: &Path) -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().as_bytes().to_vec())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn names_that_lead_elsewhere_are_left_out_and_counted() {
    if !has_fuse() {
        return;
    }
    let folder = TempDir::new().unwrap();
    let archive = folder.join("archive");
    let long = [b'x'; 2000];
    let names: [&[u8]; 11] = [
        b"honest",
        b"../outside",
        b"a/../../outside",
        b"/etc/passwd",
        b"nul\0byte",
        b"both",
        b"both/below",
        b"twice",
        b"twice",
        b"dots/./d",
        &long,
    ];
    write_archive(&archive, &names);
    let mut opened = Archive::open(&archive, &OpenOptions::default()).unwrap();
    let catalogue = opened
        .catalogue(&CatalogueOptions::default(), &Silent)
        .unwrap();
    // Four names lead elsewhere, and one is that of a directory, too.
    assert_eq!(catalogue.failures(), 5);
    let mount = Mount::at(
        TempDir::new().unwrap(),
        catalogue.into(),
        &MountOptions::default(),
    );
    let expected: [&[u8]; 4] = [b"both", b"dots", b"honest", b"twice"];
    assert_eq!(names_in(mount.path()), expected);
    assert_eq!(names_in(&mount.join("both")), [b"below"]);
    assert_eq!(fs::read(mount.join("both/below")).unwrap(), b"both/below");
    assert_eq!(fs::read(mount.join("twice")).unwrap(), b"twice");
    let long = mount.join(std::str::from_utf8(&long).unwrap());
    assert!(fs::metadata(long).is_err());
    let lines = mount.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with("left out, for names of more than 1,024 bytes: 1, such as"),
        "{lines:?}"
    );
}
