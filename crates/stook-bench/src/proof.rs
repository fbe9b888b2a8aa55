//! Whether a state of the caches holds before a run, and what a sample says of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stook_sys::ResidencyQuery;

use crate::page_state::{COLD_AT_MOST, HOT_AT_LEAST, Inputs, Shares};

/// Where something is to be before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    InMemory,
    NotInMemory,
    Anywhere,
}

impl Wanted {
    /// Says what is wrong with a share in memory; None if nothing is, or nothing could be asked for.
    fn wrong(self, share: Option<f64>, what: &str) -> Option<String> {
        let share = share?;
        let percent = |share: f64| share * 100.0;
        match self {
            Self::InMemory if share < HOT_AT_LEAST => Some(format!(
                "only {:.1} % of the {what} are in memory, and at least {:.0} % must be",
                percent(share),
                percent(HOT_AT_LEAST)
            )),
            Self::NotInMemory if share > COLD_AT_MOST => Some(format!(
                "{:.1} % of the {what} are in memory, and at most {:.0} % may be",
                percent(share),
                percent(COLD_AT_MOST)
            )),
            _ => None,
        }
    }
}

/// Says what does not hold, if anything does not: of pages first.
pub(crate) fn wrong(shares: &Shares, pages: Wanted, names: Wanted) -> Option<String> {
    let of_pages = pages.wrong(shares.pages, "pages");
    of_pages.or_else(|| names.wrong(shares.names, "names"))
}

/// Returns what a sample says of the state before it.
pub(crate) fn described(inputs: &Inputs, shares: &Shares) -> BTreeMap<String, Value> {
    let asked_with = match inputs.asking() {
        ResidencyQuery::Cachestat => "cachestat",
        ResidencyQuery::Mincore => "mincore",
    };
    let facts = [
        ("asked_with", json!(asked_with)),
        ("files", json!(inputs.count())),
        ("pages", json!(inputs.pages())),
        ("pages_share", json!(shares.pages)),
        ("names_share", json!(shares.names)),
        ("mapped_files", json!(shares.mapped)),
    ];
    facts.map(|(name, value)| (name.to_owned(), value)).into()
}
