//! One MD5 for all that the index says of a volume: a check is on record for these rows, and for no others.
//!
//! A volume keeps its stamp when a bit flips in `index.db`. A row that says another place, name or volume now was never
//! compared with what lies there.

use stook_index::RowRef;
use stook_md5::Md5;

/// The running MD5 of the rows of one volume, ascending by id.
#[derive(Default)]
pub(crate) struct RowsMd5(Md5);

impl RowsMd5 {
    /// Adds a row.
    pub(crate) fn add(&mut self, row: &RowRef<'_>) {
        let md5 = &mut self.0;
        md5.update(&row.id.0.to_le_bytes());
        md5.update(&(row.name.len() as u64).to_le_bytes());
        md5.update(row.name);
        md5.update(&row.size.to_le_bytes());
        md5.update(&row.mtime.0.to_le_bytes());
        md5.update(&row.offset.to_le_bytes());
        md5.update(&[u8::from(row.md5.is_some())]);
        md5.update(&row.md5.unwrap_or_default());
    }

    /// Returns the MD5 in hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        format!("{:032x}", u128::from_be_bytes(self.0.finish()))
    }
}
