//! Where a copy of an entry is made.

use std::borrow::Cow;

use stook_sys::Directory;

use super::fault::{At, Fault, Side};

/// The name under which something is made.
pub(super) struct Target<'t> {
    pub(super) copy: &'t Directory,
    pub(super) name: Cow<'t, [u8]>,
    /// The name that it gets at the end, if something else has that one.
    pub(super) replaces: Option<&'t [u8]>,
}

impl Target<'_> {
    /// Gives what was made its own name.
    pub(super) fn finish(&self) -> Result<(), Fault> {
        let renamed = self
            .replaces
            .map_or(Ok(()), |name| self.copy.rename(&self.name, name));
        renamed.at(Side::Copy, "replace")
    }

    /// Removes what is half done; the first failure is reported.
    pub(super) fn abandon(&self) {
        let _ = self.copy.remove(&self.name);
    }
}
