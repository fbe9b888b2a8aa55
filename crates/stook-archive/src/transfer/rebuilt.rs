//! What an index that is written anew keeps of its store.

/// Returns true if zstash's setting `hpss` names a place.
pub(crate) fn is_zstash_place(hpss: &str) -> bool {
    !hpss.is_empty() && !hpss.eq_ignore_ascii_case("none")
}

/// Returns the fact about the index in the store, without the run that it has: so the store lacks the index of here.
/// The version stays, by which it is known as ours.
pub(crate) fn without_sent_run(fact: &str) -> String {
    let version = fact.split_once(' ').map_or("", |(_, version)| version);
    format!("-1 {version}")
}
