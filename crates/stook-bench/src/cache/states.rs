//! The samples of each state, and whether the state was proved.

use crate::cases::Case;
use crate::record::Sample;
use crate::warnings::Warning;

/// In this order states are shown, if there are samples of them.
pub(super) const STATES: [&str; 6] = [
    "cold",
    "warm",
    "hot",
    "local cold",
    "local warm",
    "local hot",
];

/// The samples of one state.
pub(super) struct OfState<'a> {
    pub(super) state: &'static str,
    pub(super) case: Case<'a>,
    /// Why it is not proved that memory was without what the state is to be without.
    pub(super) unproved: Option<Warning>,
}

/// Returns the states of which there are samples.
pub(super) fn states(samples: &[Sample]) -> Vec<OfState<'_>> {
    let of_state = |state: &'static str| {
        let case = Case::with(samples, &[("state", state)])?;
        let unproved = unproved(state, &case);
        Some(OfState {
            state,
            case,
            unproved,
        })
    };
    STATES.into_iter().filter_map(of_state).collect()
}

impl OfState<'_> {
    pub(super) fn is_hot(&self) -> bool {
        self.state.ends_with("hot")
    }

    /// The name in tables: with a question mark if the state is not proved.
    pub(super) fn name(&self) -> String {
        let mark = if self.unproved.is_some() { "?" } else { "" };
        format!("{}{mark}", self.state)
    }
}

/// Whether memory was without names and data, as far as samples say; those that say nothing of it are taken for what they
/// are called.
fn unproved(state: &str, case: &Case<'_>) -> Option<Warning> {
    if state.ends_with("hot") {
        return None;
    }
    let is_asked = |sample: &Sample| {
        let shares = ["pages_share", "names_share"].map(|name| sample.proof.get(name));
        shares
            .into_iter()
            .flatten()
            .any(serde_json::Value::is_number)
    };
    let of_sample = |sample: &&Sample| match sample.proof.get("method")?.as_str()? {
        "fadvise" => Some(Warning::DataOnly),
        _ => (!is_asked(sample)).then_some(Warning::NothingAsked),
    };
    case.samples.iter().find_map(of_sample)
}
