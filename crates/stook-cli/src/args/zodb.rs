//! `stook zodb`: what was typed.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use stook_zodb::Oid;

#[derive(Debug, ClapArgs)]
pub(crate) struct ZodbArgs {
    #[command(subcommand)]
    pub(crate) command: ZodbCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ZodbCommand {
    /// Rebuild Data.fs.index, or bring it up to date
    ///
    /// Says what was wrong with the index: missing, unreadable, insane (not the index of this file) or stale. A sane index is
    /// gone on from where it ends; else the whole file is read. At a transaction that is not perfect reading stops: what lies
    /// before it is indexed, the status is 4, and ZODB itself decides what becomes of the rest. Data.fs is never written. The
    /// database must not be open for writing elsewhere.
    Reindex(ZodbReindexArgs),
    /// Verify every header, pointer and pickle, and the index for every object
    ///
    /// Goes on behind damage and names all of it, with its position. The status is 4 if there is any. Works on a database that
    /// is in use, of which it checks what is there when it begins.
    Check(ZodbDataArgs),
    /// Show what takes the space: by class, by object, by day
    ///
    /// Current records are those that objects have now, old ones may be removed by a pack. Bytes are those of pickles.
    Analyze(ZodbDataArgs),
    /// Show references that lead nowhere, who refers to an object, and the way to it from the root
    ///
    /// The status is 4 if references lead to objects that are not there.
    References(ZodbReferencesArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ZodbDataArgs {
    /// The database
    #[arg(value_name = "DATA.FS")]
    pub(crate) data: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ZodbReindexArgs {
    /// The database
    #[arg(value_name = "DATA.FS")]
    pub(crate) data: PathBuf,
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Read the whole file even if the index looks sane
    #[arg(long)]
    pub(crate) force: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ZodbReferencesArgs {
    /// The database
    #[arg(value_name = "DATA.FS")]
    pub(crate) data: PathBuf,
    /// Show who refers to this object, such as 0x1f or 31, and the way to it from the root
    #[arg(long, value_name = "OID", value_parser = parse_oid)]
    pub(crate) to: Option<Oid>,
}

/// Reads the number of an object, decimal or hexadecimal.
fn parse_oid(text: &str) -> Result<Oid, String> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map(Oid).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oid_is_a_number() {
        assert_eq!(parse_oid("0x1f"), Ok(Oid(31)));
        assert_eq!(parse_oid("31"), Ok(Oid(31)));
        for text in ["", "0x", "x", "-1", "0x10000000000000000"] {
            assert!(parse_oid(text).is_err(), "{text}");
        }
    }
}
