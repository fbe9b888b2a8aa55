//! `list`: what an archive holds, straight from the index.

use std::ops::ControlFlow;
use std::sync::Arc;

use stook_index::{Attributes, RowRef};
use stook_timers::scope;

use crate::ArchiveError;
use crate::archive::{Archive, Parts};
use crate::member_attributes::MemberAttributes;
use crate::observer::{CountingObserver, Observer};
use crate::read::Volumes;
use crate::select::{ListOptions, select_rows};

/// What a `list` found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ListReport {
    /// Members selected.
    pub members: u64,
    /// Rows of the index that cannot be read, each reported to the observer.
    pub failed: u64,
}

/// Shows the selected rows to `visit`, in the order they were archived, until it breaks off.
///
/// # Errors
/// `NotInState` if a pattern matches only names of other states, `NoMatch` if it matches nothing, `Index` if the archive
/// cannot be read. A row that cannot be read is no error: the observer is shown it, and it is counted.
///
/// # Cost
/// Two passes over the index; no volume is opened.
pub fn list(
    archive: &mut Archive,
    options: &ListOptions,
    observer: &dyn Observer,
    visit: impl FnMut(RowRef<'_>) -> ControlFlow<()>,
) -> Result<ListReport, ArchiveError> {
    let _scope = scope!("list");
    let observer = CountingObserver::new(observer);
    let Parts { folder, index, .. } = archive.parts(&observer)?;
    let selection = select_rows(folder, index, options, &observer)?;
    index.selected(&selection, visit)?;
    index.require_unchanged()?;
    Ok(ListReport {
        members: selection.len(),
        failed: observer.failures(),
    })
}

/// As [`list`], and shows with each row what else is known of its member: nothing where the index does not say and the
/// volume is not here, or has another member there.
///
/// # Errors
/// As [`list`].
///
/// # Cost
/// As [`list`], and a block of the index for every 4,096 rows. Rows that zstash wrote cost a lookup and a read of their header
/// each, until `fill_attributes` or an update has added them.
pub fn list_with_attributes(
    archive: &mut Archive,
    options: &ListOptions,
    observer: &dyn Observer,
    mut visit: impl FnMut(RowRef<'_>, Option<&Attributes<'_>>) -> ControlFlow<()>,
) -> Result<ListReport, ArchiveError> {
    let _scope = scope!("list");
    let observer = CountingObserver::new(observer);
    let Parts {
        folder,
        index,
        store,
        ..
    } = archive.parts(&observer)?;
    let selection = select_rows(folder, index, options, &observer)?;
    let mut attributes = MemberAttributes::new(index, Volumes::new(Arc::clone(store)));
    let mut outcome = Ok(());
    index.selected(&selection, |row| {
        if observer.is_interrupted() {
            outcome = Err(ArchiveError::Interrupted);
            return ControlFlow::Break(());
        }
        match attributes.of(&row) {
            Ok(found) => visit(row, found.as_ref()),
            Err(error) => {
                outcome = Err(error);
                ControlFlow::Break(())
            }
        }
    })?;
    outcome?;
    index.require_unchanged()?;
    Ok(ListReport {
        members: selection.len(),
        failed: observer.failures(),
    })
}
