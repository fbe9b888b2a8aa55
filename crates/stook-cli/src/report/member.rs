//! Members of an archive, as `list` shows them.

use serde::Serialize;
use stook_archive::{Attributes, MemberKind, Mtime, RowRef};
use stook_sys::display_bytes;

use super::{JsonPath, file_time, text_and_hex, time};
use crate::output::hex;

/// A member of an archive.
#[derive(Serialize)]
pub(crate) struct ListedMember {
    #[serde(flatten)]
    path: JsonPath,
    id: i64,
    size: u64,
    mtime: String,
    md5: Option<String>,
    volume: String,
    offset: u64,
    kind: Option<&'static str>,
    mode: Option<String>,
    uid: Option<u64>,
    gid: Option<u64>,
    user: Option<String>,
    group: Option<String>,
    target: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_hex: Option<String>,
}

impl ListedMember {
    pub(crate) fn new(row: &RowRef<'_>, attributes: Option<&Attributes<'_>>) -> Self {
        let target = attributes.and_then(target).map(text_and_hex);
        let (target, target_hex) = target.map_or((None, None), |(text, hex)| (Some(text), hex));
        Self {
            path: JsonPath::new(row.name),
            id: row.id.0,
            size: row.size,
            mtime: known_time(row, attributes),
            md5: row.md5.map(|md5| hex(&md5)),
            volume: row.volume.to_string(),
            offset: row.offset,
            kind: attributes.map(|known| kind_word(known.kind)),
            mode: attributes.map(|known| format!("{:o}", known.mode)),
            uid: attributes.map(|known| known.uid),
            gid: attributes.map(|known| known.gid),
            user: attributes.and_then(|known| account(known.uname)),
            group: attributes.and_then(|known| account(known.gname)),
            target,
            target_hex,
        }
    }
}

/// The index keeps years from 1 to 9999 in the row; the attributes have the exact time.
fn known_time(row: &RowRef<'_>, attributes: Option<&Attributes<'_>>) -> String {
    let exact = attributes.map(|known| known.mtime);
    let exact = exact.filter(|&exact| Mtime::from(exact) == row.mtime);
    exact.map_or_else(|| time(row.mtime), file_time)
}

fn kind_word(kind: MemberKind) -> &'static str {
    match kind {
        MemberKind::File => "file",
        MemberKind::HardLink => "hard-link",
        MemberKind::Symlink => "symlink",
        MemberKind::CharDevice => "char-device",
        MemberKind::BlockDevice => "block-device",
        MemberKind::Directory => "directory",
        MemberKind::Fifo => "fifo",
    }
}

fn account(name: &[u8]) -> Option<String> {
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}

/// Returns where a symbolic link points, or the first name of a file with several.
fn target<'a>(attributes: &Attributes<'a>) -> Option<&'a [u8]> {
    let target = (!attributes.target.is_empty()).then_some(attributes.target);
    target.or(attributes.link)
}

/// Returns a member with its columns, as `list --long` prints it.
pub(crate) fn long_row(row: &RowRef<'_>, attributes: Option<&Attributes<'_>>) -> String {
    let md5 = row.md5.map_or_else(|| "-".to_owned(), |md5| hex(&md5));
    let (mode, owner, target) = match attributes {
        Some(known) => (mode_text(known), owner_text(known), target_text(known)),
        None => ("??????????".to_owned(), "?".to_owned(), String::new()),
    };
    let size = match attributes.map(|known| (known.kind, known.device)) {
        Some((MemberKind::CharDevice | MemberKind::BlockDevice, (major, minor))) => {
            format!("{major},{minor}")
        }
        _ => row.size.to_string(),
    };
    format!(
        "{mode} {owner:<17} {size:>12} {:<26} {md5:<32} {} {:>12} {}{target}",
        row.mtime.to_string(),
        row.volume,
        row.offset,
        display_bytes(row.name)
    )
}

/// Returns type and mode as `ls -l` shows them; a hard link has the `h` of `tar`.
fn mode_text(attributes: &Attributes<'_>) -> String {
    let kind = match attributes.kind {
        MemberKind::File => '-',
        MemberKind::HardLink => 'h',
        MemberKind::Symlink => 'l',
        MemberKind::CharDevice => 'c',
        MemberKind::BlockDevice => 'b',
        MemberKind::Directory => 'd',
        MemberKind::Fifo => 'p',
    };
    let mode = attributes.mode;
    // Set-user-id, set-group-id and sticky bit show in place of the three `x`.
    let classes = [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')];
    let mut text = String::from(kind);
    for (shift, special, letter) in classes {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// Returns owner and group by name, or by number where no name was stored.
fn owner_text(attributes: &Attributes<'_>) -> String {
    let shown = |name: &[u8], number: u64| {
        if name.is_empty() {
            number.to_string()
        } else {
            display_bytes(name)
        }
    };
    let user = shown(attributes.uname, attributes.uid);
    format!("{user}/{}", shown(attributes.gname, attributes.gid))
}

fn target_text(attributes: &Attributes<'_>) -> String {
    let arrow = match attributes.kind {
        MemberKind::Symlink => "->",
        _ => "link to",
    };
    let target = target(attributes).map(display_bytes);
    target.map_or_else(String::new, |target| format!(" {arrow} {target}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_look_as_those_of_ls() {
        let shown = |kind, mode| {
            mode_text(&Attributes {
                kind,
                mode,
                ..Attributes::default()
            })
        };
        for (kind, mode, expected) in [
            (MemberKind::File, 0o644, "-rw-r--r--"),
            (MemberKind::File, 0o4755, "-rwsr-xr-x"),
            (MemberKind::File, 0o6640, "-rwSr-S---"),
            (MemberKind::Directory, 0o1777, "drwxrwxrwt"),
            (MemberKind::Directory, 0o3770, "drwxrws--T"),
            (MemberKind::Symlink, 0o777, "lrwxrwxrwx"),
            (MemberKind::HardLink, 0o400, "hr--------"),
            (MemberKind::CharDevice, 0, "c---------"),
            (MemberKind::BlockDevice, 0o1, "b--------x"),
            (MemberKind::Fifo, 0o222, "p-w--w--w-"),
        ] {
            assert_eq!(shown(kind, mode), expected);
        }
    }

    #[test]
    fn an_owner_without_a_name_is_a_number() {
        let known = Attributes {
            uid: 1000,
            gid: 5,
            gname: b"te\nam",
            ..Attributes::default()
        };
        assert_eq!(owner_text(&known), r"1000/te\nam");
    }
}
