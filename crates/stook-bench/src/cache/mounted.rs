//! A mount whose server can be asked: its part in making a state, and what it did in a run.

use std::collections::BTreeMap;

use serde_json::Value;

use super::State;
use crate::error::BenchError;
use crate::job::Ran;
use crate::mount_server::{Kept, MountServer, ServerFigures};
use crate::remedy::Remedy;

/// What samples call the figures of a server.
pub(super) const IN_CALLBACKS: &str = "callback_seconds";
pub(super) const WAITING: &str = "waiting_for_fetch_seconds";
pub(super) const CLIENT_BLOCKED: &str = "client_blocked_seconds";
pub(super) const STORE_BYTES: &str = "store_bytes";
pub(super) const DISK_BYTES: &str = "cache_bytes";

/// Has a server forget what is not there in a state, and has it prove that.
pub(super) fn make(server: &dyn MountServer, state: State, when: &str) -> Result<(), BenchError> {
    server.evict(match state {
        State::Cold => Kept::Everywhere,
        State::Warm => Kept::InMemory,
        State::Hot => return Ok(()),
    })?;
    let held = server.figures()?.memory_bytes;
    if held > 0 {
        let what = format!(
            "{when}: the state does not hold: the server of the mount has {held} bytes of blocks in memory"
        );
        return Err(BenchError::refused_with(Remedy::KeepInputsIdle, what));
    }
    Ok(())
}

/// Returns what a server did during a run, and how long the command itself did nothing meanwhile.
pub(super) fn proof(
    before: &ServerFigures,
    after: &ServerFigures,
    ran: &Ran,
) -> BTreeMap<String, Value> {
    let sample = ran.sample(0);
    let delay = sample.run_delay_seconds.unwrap_or(0.0);
    let blocked = (sample.real_seconds - sample.cpu_seconds() - delay).max(0.0);
    let callbacks = after.in_callbacks.saturating_sub(before.in_callbacks);
    let waiting = after
        .waiting_for_fetch
        .saturating_sub(before.waiting_for_fetch);
    let figures = [
        (IN_CALLBACKS, callbacks.as_secs_f64().into()),
        (WAITING, waiting.as_secs_f64().into()),
        (CLIENT_BLOCKED, blocked.into()),
        (STORE_BYTES, (after.store_bytes - before.store_bytes).into()),
        (DISK_BYTES, (after.disk_bytes - before.disk_bytes).into()),
    ];
    figures
        .into_iter()
        .map(|(name, figure)| (name.to_owned(), figure))
        .collect()
}
