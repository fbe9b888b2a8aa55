//! What a double should do wrong, and how slowly.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// Without any of these a double is fast and faultless. Transfers are counted from 1, each file by itself.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one independent fault"
)]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trouble {
    /// The transfer that fails half-way.
    pub fail_at: Option<u64>,
    /// The transfer that moves half of the bytes and reports success.
    pub truncate_at: Option<u64>,
    /// The transfer that moves half of the bytes and then waits for ever.
    pub hang_at: Option<u64>,
    /// The command that waits for ever.
    pub hang_on: Option<String>,
    /// SIGTERM does not end it.
    pub ignores_term: bool,
    /// Hashes that it tells are not those of the bytes.
    pub lies: bool,
    /// A file is not replaced by a rename, whatever the options.
    pub never_replaces: bool,
    /// It ends with 0 whatever has happened.
    pub exits_zero: bool,
    /// How fast bytes move.
    pub bytes_per_second: Option<u64>,
    /// How many operations a login lasts.
    pub login_operations: Option<u64>,
    /// How many bytes a login lasts.
    pub login_bytes: Option<u64>,
    /// The service is out of reach from this operation on, and for how many; they are counted from 1.
    pub unreachable: Option<(u64, u64)>,
    /// How many bytes there is room for.
    pub capacity: Option<u64>,
    /// How many tapes new files go to in turn; 0: they stay on disk.
    pub tapes: u64,
}

impl Trouble {
    pub(super) fn write(&self, folder: &Path) {
        let text = serde_json::to_vec(self).expect("it is plain data");
        // In one step: a program may be reading it.
        let partial = folder.join("trouble.partial");
        std::fs::write(&partial, text).expect("the state can be written");
        std::fs::rename(partial, folder.join("trouble.json")).expect("the state can be written");
    }

    pub(super) fn read(folder: &Path) -> Self {
        let text = std::fs::read(folder.join("trouble.json")).expect("the state can be read");
        serde_json::from_slice(&text).expect("it was written by `write`")
    }
}
