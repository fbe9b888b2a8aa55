//! Regular files: made with their final mode where that is safe, filled, metadata_set, closed.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;

use stook_sys::{
    Directory, FileKind, Links, Metadata, Xattr, close_file, get_xattrs, write_all_at,
};
use stook_timers::scope;

use super::content::{Content, with_buffer};
use super::copier::Copier;
use super::fault::{At, Fault, READ_ATTRIBUTES, Side};
use super::state::DirectoryState;
use super::target::Target;
use super::visitor::{Entry, Outcome};
use crate::Reason;
use crate::metadata::{
    ACCESS_ACL, Current, OpenTarget, Original, Rights, remove_inherited, without_shadows,
};

/// Set-id and sticky bits: a file is not made with them.
const SPECIAL_BITS: u32 = 0o7000;

/// A file that is to be copied.
pub(super) struct OpenFile {
    file: File,
    attributes: Vec<Xattr>,
    pub(super) metadata: Metadata,
}

impl OpenFile {
    pub(super) fn open(entry: &Entry<'_, '_>) -> Result<Self, Fault> {
        let _scope = scope!("open");
        let file = entry.source.open_file(entry.name, Links::Refuse);
        let file = match file.at(Side::Source, "open") {
            // What took its place may be a link, which is not followed, or a socket, which cannot be opened.
            Err(_) if has_other_kind(entry) => {
                return Err(Fault::because("copy", Reason::Changed));
            }
            other => other?,
        };
        // Before the look at it: some file systems take it for a change.
        let attributes = get_xattrs(&file).at(Side::Source, READ_ATTRIBUTES)?;
        let attributes = without_shadows(attributes);
        let metadata = stook_sys::metadata(&file).at(Side::Source, "look at")?;
        if metadata.kind != FileKind::File {
            return Err(Fault::because("copy", Reason::Changed));
        }
        Ok(Self {
            file,
            attributes,
            metadata,
        })
    }
}

fn has_other_kind(entry: &Entry<'_, '_>) -> bool {
    let now = entry.source.metadata(entry.name, Links::Refuse);
    now.is_ok_and(|now| now.kind != FileKind::File)
}

impl Copier<'_, '_> {
    /// Copies an open file; with `replaces`, something that is no directory has its name.
    pub(super) fn copy_file(
        &self,
        entry: &Entry<'_, '_>,
        copy: &Directory,
        original: OpenFile,
        replaces: bool,
    ) -> Result<Outcome, Fault> {
        let state = &entry.node.data;
        let OpenFile {
            file: source,
            attributes,
            metadata,
        } = original;
        let metadata = &metadata;
        let content = Content {
            file: &source,
            metadata,
            methods: &state.methods,
            went_on: &|bytes| {
                self.context.observer.advanced(0, bytes);
                self.context.is_stopped()
            },
        };
        let mut target = self.target(entry, copy, replaces);
        let (file, has, written) = with_buffer(|buffer| {
            let is_read = state.methods.are_read_first(metadata.size) && {
                let _scope = scope!("read");
                content.is_read_whole(buffer)?
            };
            let (file, has) = self.create(state, &mut target, metadata, attributes.is_empty())?;
            let _scope = scope!("write");
            let written = if is_read {
                write_all_at(&file, buffer, 0)
                    .at(Side::Copy, "write")
                    .map(|()| (metadata.size, false))
            } else {
                content.copy(&file).map(|bytes| (bytes, true))
            };
            Ok::<_, Fault>((file, has, written))
        })?;
        let (bytes, is_reported) = written.inspect_err(|_| target.abandon())?;
        let metadata_set = {
            let _scope = scope!("metadata");
            let original = Original {
                metadata,
                attributes: &attributes,
            };
            self.user.apply(
                &OpenTarget(file.as_fd()),
                original,
                &has,
                &state.methods.refused,
            )
        };
        let _ = close_file(source);
        // A network file system may report only now that the disk is full.
        let closed = close_file(file).at(Side::Copy, "write");
        closed
            .and_then(|()| target.finish())
            .inspect_err(|_| target.abandon())?;
        // The content is there, and stays.
        metadata_set?;
        Ok(Outcome::Done { bytes, is_reported })
    }

    /// Creates a file, with its mode at once where nobody may read it who should not.
    fn create(
        &self,
        state: &DirectoryState,
        target: &mut Target<'_>,
        metadata: &Metadata,
        has_no_attributes: bool,
    ) -> Result<(File, Current<'static>), Fault> {
        let _scope = scope!("create");
        let is_plain = metadata.mode & SPECIAL_BITS == 0 && has_no_attributes && !state.lends_lists;
        let asked = match state.defaults.owner() {
            // In a directory that this run made no one else can be yet.
            _ if is_plain && state.is_made => metadata.mode,
            Some(owner) if is_plain && self.user.owner_to_give(metadata, owner).is_none() => {
                Rights::of(metadata, None, owner).mode
            }
            // An attribute of the user's own file takes the right to write.
            _ if !self.user.is_root => 0o600,
            _ => metadata.mode & 0o600,
        };
        let file = self
            .create_new(state, target, asked)
            .at(Side::Copy, "create")?;
        if state.lends_lists {
            remove_inherited(&file, &[ACCESS_ACL])?;
        }
        let mut mode = state.defaults.mode(asked);
        if state.defaults.owner().is_none() || mode.is_none() {
            let made = stook_sys::metadata(&file).at(Side::Copy, "look at")?;
            state.defaults.learn(asked, &made);
            mode = Some(made.mode);
        }
        let has = Current {
            owner: state.defaults.owner().unwrap_or_default(),
            mode: mode.filter(|_| !state.lends_lists),
            most: None,
            mtime: None,
            attributes: &[],
            is_new: true,
        };
        Ok((file, has))
    }

    /// A temporary name that another run left is passed over.
    fn create_new(
        &self,
        state: &DirectoryState,
        target: &mut Target<'_>,
        mode: u32,
    ) -> io::Result<File> {
        loop {
            match target.copy.create_file(&target.name, mode) {
                Err(error)
                    if error.kind() == io::ErrorKind::AlreadyExists
                        && target.replaces.is_some() =>
                {
                    target.name = self.temporary_name(state).into();
                }
                other => return other,
            }
        }
    }
}
