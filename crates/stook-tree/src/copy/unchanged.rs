//! A copy whose content is that of the original: whether owner, rights and attributes are, too, and setting them right.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_sys::{Directory, FileKind, Links as Follow, Metadata, Xattr, get_xattrs};

use super::copier::Copier;
use super::fault::{At, Fault, READ_ATTRIBUTES, Side};
use super::links::Told;
use super::visitor::{Entry, Outcome};
use crate::Reason;
use crate::metadata::{Current, NamedTarget, Original, RefusedAttributes, User, without_shadows};

impl User {
    /// Returns the attributes of an entry of the tree that a copy gets.
    pub(super) fn attributes_of_source(
        &self,
        entry: &Entry<'_, '_>,
        kind: FileKind,
    ) -> Result<Vec<Xattr>, Fault> {
        let has_none = &entry.node.data.methods.source_has_none;
        self.attributes_of(entry.source, entry.name, kind, has_none)
            .at(Side::Source, READ_ATTRIBUTES)
    }

    fn attributes_of(
        &self,
        directory: &Directory,
        name: &[u8],
        kind: FileKind,
        has_none: &AtomicBool,
    ) -> io::Result<Vec<Xattr>> {
        // Links have no attributes but those of the superuser.
        let is_hidden = kind == FileKind::Symlink && !self.is_root;
        if is_hidden || has_none.load(Ordering::Relaxed) {
            return Ok(Vec::new());
        }
        let found = match directory.xattrs_if_supported(name) {
            // There is no `/proc`.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match kind {
                FileKind::File => Some(get_xattrs(directory.open_file(name, Follow::Refuse)?)?),
                _ => Some(Vec::new()),
            },
            other => other?,
        };
        if found.is_none() {
            has_none.store(true, Ordering::Relaxed);
        }
        Ok(without_shadows(found.unwrap_or_default()))
    }

    /// Calls `compare` with what an entry is to be like, and what its copy has.
    fn with_both<T>(
        &self,
        entry: &Entry<'_, '_>,
        copy: &Directory,
        (metadata, there): (&Metadata, &Metadata),
        compare: impl FnOnce(Original<'_>, &Current<'_>, &RefusedAttributes) -> T,
    ) -> Result<T, Fault> {
        let methods = &entry.node.data.methods;
        let attributes = self.attributes_of_source(entry, metadata.kind)?;
        let found = self
            .attributes_of(copy, entry.new_name, there.kind, &methods.copy_has_none)
            .at(Side::Copy, READ_ATTRIBUTES)?;
        let original = Original {
            metadata,
            attributes: &attributes,
        };
        let current = Current::all_of(there, &found);
        Ok(compare(original, &current, &methods.refused))
    }

    /// Returns what differs besides content and time.
    pub(super) fn difference(
        &self,
        entry: &Entry<'_, '_>,
        copy: &Directory,
        metadata: &Metadata,
        there: &Metadata,
    ) -> Result<Option<Reason>, Fault> {
        self.with_both(
            entry,
            copy,
            (metadata, there),
            |original, current, refused| self.changes(original, current, refused).why(),
        )
    }
}

impl Copier<'_, '_> {
    /// Gives a copy that is the same otherwise its owner, rights, attributes and time.
    pub(super) fn set_right(
        &self,
        entry: &Entry<'_, '_>,
        copy: &Directory,
        metadata: &Metadata,
        there: &Metadata,
    ) -> Result<Outcome, Fault> {
        let to = NamedTarget {
            directory: copy,
            name: entry.new_name,
        };
        self.user.with_both(
            entry,
            copy,
            (metadata, there),
            |original, current, refused| self.user.apply(&to, original, current, refused),
        )??;
        Ok(Outcome::Unchanged)
    }

    /// Returns true if setting the copy right would change what has other names, too, which the original has not.
    pub(super) fn is_tied(
        &self,
        entry: &Entry<'_, '_>,
        copy: &Directory,
        metadata: &Metadata,
        there: &Metadata,
    ) -> Result<bool, Fault> {
        Ok(
            metadata.links < 2
                && there.links > 1
                && !self.is_right(entry, copy, metadata, there)?,
        )
    }

    fn is_right(
        &self,
        entry: &Entry<'_, '_>,
        copy: &Directory,
        metadata: &Metadata,
        there: &Metadata,
    ) -> Result<bool, Fault> {
        Ok(there.mtime == metadata.mtime
            && self
                .user
                .difference(entry, copy, metadata, there)?
                .is_none())
    }

    /// Reports what would be done about an entry; `same` is its copy if the content is the same.
    pub(super) fn tell(
        &self,
        entry: &Entry<'_, '_>,
        copy: Option<&Directory>,
        metadata: &Metadata,
        same: Option<&Metadata>,
    ) -> Result<Outcome, Fault> {
        let kept = same.map(Metadata::identity);
        let told = match metadata.links {
            0 | 1 => Told::First,
            names => self.links.tell(metadata.identity(), names, kept),
        };
        let is_unchanged = match (&told, copy, same) {
            (Told::First, Some(copy), Some(same)) => self.is_right(entry, copy, metadata, same)?,
            (Told::First, ..) => false,
            (Told::Later(first), ..) => kept.is_some() && kept == *first,
        };
        if is_unchanged {
            return Ok(Outcome::Unchanged);
        }
        self.context.would_copy(entry.node, entry.name);
        // The other names become links to it.
        let is_first = told == Told::First;
        let is_content = metadata.kind == FileKind::File && same.is_none() && is_first;
        Ok(Outcome::Done {
            bytes: if is_content { metadata.size } else { 0 },
            is_reported: false,
        })
    }
}
