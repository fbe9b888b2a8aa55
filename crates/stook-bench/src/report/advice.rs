//! The one place where advice computed from figures comes onto the page.

use crate::record::{Kind, Results};

/// Returns advice on a run, a sentence each; nothing for kinds of runs about which there is none.
pub(super) fn of(results: &Results) -> Vec<String> {
    match results.header.kind {
        Kind::Fs | Kind::Cache | Kind::Update => Vec::new(),
    }
}
