//! The small tables: settings, volumes, checks that were passed.

use std::collections::BTreeSet;

use rusqlite::types::ValueRef;

use super::{Check, is_strict_md5, strict_time, text};
use crate::compression;
use crate::damage::{IndexDamage, IndexFault};
use crate::error::{IndexError, READ};
use crate::index::read_maxsize;
use crate::name::escape_name;
use crate::row::{BAD_MD5, BAD_SIZE, unsigned, volume_of};
use crate::transfers::{StoreFact, TRANSFERS};
use crate::types::FORMAT;
use crate::types::{Run, VolumeId};

impl Check<'_> {
    pub(super) fn config(&mut self) -> Result<(), IndexError> {
        const TABLE: &str = "config";
        let mut missing: BTreeSet<&'static str> = ["hpss", "maxsize", "path"].into();
        self.each(TABLE, "rowid, arg, value", |check, id, row| {
            let column = |index| row.get_ref(index).map_err(check.index.fault(READ));
            let (arg, value) = (column(1)?, column(2)?);
            let Some(arg) = text(arg) else {
                let what = "its arg is not the name of a setting";
                check.tell(IndexDamage::value(TABLE, id, "arg", what));
                return Ok(());
            };
            if let Some(setting) = missing.take(arg) {
                let value = text(value);
                let is_sound = match setting {
                    "maxsize" => value.and_then(read_maxsize).is_some(),
                    _ => value.is_some(),
                };
                if !is_sound {
                    let what = IndexFault::BadSetting(setting);
                    check.tell(IndexDamage::value(TABLE, id, "value", what));
                }
            }
            Ok(())
        })?;
        for setting in missing {
            self.tell(IndexDamage::table(TABLE, IndexFault::NoSetting(setting)));
        }
        Ok(())
    }

    pub(super) fn meta(&mut self) -> Result<(), IndexError> {
        const TABLE: &str = "stook_meta";
        let mut has_format = false;
        let query = "SELECT CAST(value AS blob) FROM config WHERE arg = 'path'";
        let path = self.index.connection.query_row(query, [], |row| row.get(0));
        let path: Option<Vec<u8>> = path.unwrap_or_default();
        self.each(TABLE, "rowid, key, value", |check, id, row| {
            let column = |index| row.get_ref(index).map_err(check.index.fault(READ));
            let (key, value) = (column(1)?, column(2)?);
            let what = match (text(key), value) {
                (Some("format"), value) => {
                    has_format = true;
                    let is_known =
                        matches!(value, ValueRef::Integer(format) if (1..=FORMAT).contains(&format));
                    (!is_known).then_some("its value is not a format that this program knows")
                }
                (Some("path"), ValueRef::Blob(raw)) => {
                    let is_that = std::str::from_utf8(raw).is_err()
                        && path.as_deref() == Some(escape_name(raw).as_bytes());
                    (!is_that).then_some("its value is not what the path in `config` stands for")
                }
                (Some("path"), _) => Some("its value is not a path outside UTF-8, in bytes"),
                (Some(key), value) if compression::is_key(key) => compression::level_of(value)
                    .is_none()
                    .then_some("its value is not a level of zstd"),
                (Some(key), value) if StoreFact::is_key(key) => text(value)
                    .is_none_or(str::is_empty)
                    .then_some("its value is not a text"),
                _ => Some("its key is not one of this format"),
            };
            if let Some(what) = what {
                check.tell(IndexDamage::value(TABLE, id, "value", what));
            }
            Ok(())
        })?;
        if !has_format {
            self.tell(IndexDamage::table(TABLE, "`format` is missing"));
        }
        Ok(())
    }

    /// Runs write a row for each volume; zstash may not, and may write several.
    pub(super) fn tars(&mut self, runs: &[Run]) -> Result<(), IndexError> {
        const TABLE: &str = "tars";
        let mut found = BTreeSet::new();
        self.each(TABLE, "id, name, size, md5", |check, id, row| {
            let column = |index| row.get_ref(index).map_err(check.index.fault(READ));
            let volume = volume_of(column(1)?);
            found.extend(volume);
            let values = [
                ("id", (id < 1).then_some("its id is out of range")),
                (
                    "name",
                    volume
                        .is_none()
                        .then_some("its name is not the name of a volume"),
                ),
                ("size", unsigned(column(2)?).is_none().then_some(BAD_SIZE)),
                ("md5", (!is_strict_md5(column(3)?)).then_some(BAD_MD5)),
            ];
            for (column, why) in values {
                if let Some(why) = why {
                    check.tell(IndexDamage::value(TABLE, id, column, why));
                }
            }
            Ok(())
        })?;
        let is_of_a_run = |id: i64| {
            let end = |run: &Run| run.last_file.map_or(i64::MAX, |last| last.0);
            runs.iter()
                .any(|run| (run.first_file.0..=end(run)).contains(&id))
        };
        let missing: Vec<VolumeId> = self
            .volumes
            .iter()
            .filter(|(volume, first)| !found.contains(volume) && is_of_a_run(**first))
            .map(|(volume, _)| *volume)
            .collect();
        for volume in missing {
            self.tell(IndexDamage::table(TABLE, IndexFault::NoVolume(volume)));
        }
        Ok(())
    }

    pub(super) fn checks(&mut self) -> Result<(), IndexError> {
        const TABLE: &str = "stook_checks";
        self.each(TABLE, "rowid, volume, stamp, checked", |check, id, row| {
            let column = |index| row.get_ref(index).map_err(check.index.fault(READ));
            let is_volume =
                volume_of(column(1)?).is_some_and(|volume| check.volumes.contains_key(&volume));
            let is_known = is_volume || check.has_unknown_rows;
            let values = [
                ("volume", (!is_known).then_some("its volume has no members")),
                (
                    "stamp",
                    (!text(column(2)?).is_some_and(is_stamp))
                        .then_some("its stamp is not the state of a file"),
                ),
                (
                    "checked",
                    strict_time(column(3)?).is_none().then_some(BAD_CHECKED),
                ),
            ];
            for (column, why) in values {
                if let Some(why) = why {
                    check.tell(IndexDamage::value(TABLE, id, column, why));
                }
            }
            Ok(())
        })
    }
}

impl Check<'_> {
    pub(super) fn transfers(&mut self) -> Result<(), IndexError> {
        let query = "rowid, volume, size, proof, version, sent";
        self.each(TRANSFERS, query, |check, id, row| {
            let column = |index| row.get_ref(index).map_err(check.index.fault(READ));
            let is_volume = volume_of(column(1)?).is_some();
            let version = column(4)?;
            let values = [
                ("volume", (!is_volume).then_some("it is no volume")),
                ("size", unsigned(column(2)?).is_none().then_some(BAD_SIZE)),
                ("proof", text(column(3)?).is_none().then_some(BAD_TEXT)),
                (
                    "version",
                    (version != ValueRef::Null && text(version).is_none()).then_some(BAD_TEXT),
                ),
                (
                    "sent",
                    strict_time(column(5)?).is_none().then_some(BAD_SENT),
                ),
            ];
            for (column, why) in values {
                if let Some(why) = why {
                    check.tell(IndexDamage::value(TRANSFERS, id, column, why));
                }
            }
            Ok(())
        })
    }
}

const BAD_TEXT: &str = "it is not a text";
const BAD_SENT: &str = "its sent is not a time of the form `YYYY-MM-DD HH:MM:SS`";
const BAD_CHECKED: &str = "its checked is not a time of the form `YYYY-MM-DD HH:MM:SS`";

/// Returns true for the form in which `stook_sys::Stamp` is written: two numbers and two times. Behind them may be the MD5
/// of the rows of the volume.
fn is_stamp(text: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = |text: &str| {
        let text = text.strip_prefix('-').unwrap_or(text);
        text.split_once('.').is_some_and(|(seconds, fraction)| {
            is_number(seconds) && is_number(fraction) && fraction.len() == 9
        })
    };
    let is_md5 =
        |text: &&str| text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split(' ').collect();
    match parts[..] {
        [size, inode, changed, touched, ref rows @ ..] if rows.len() < 2 => {
            is_number(size)
                && is_number(inode)
                && is_time(changed)
                && is_time(touched)
                && rows.iter().all(is_md5)
        }
        _ => false,
    }
}
