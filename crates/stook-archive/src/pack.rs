//! The workers of `create` and `update`: open, read, MD5, encode.
//!
//! A worker turns a batch of small members into one buffer of whole members, or a large file into a
//! series of slices. A file that is not what the survey saw (shrunk, grown, gone, unreadable, changed
//! while it was read) is reported and leaves nothing behind: small ones are cut off the buffer, large
//! ones are taken back by the writer.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use stook_md5::md5_many;
use stook_pool::{Output, advance};
use stook_sys::{
    Directory, FileKind, Links, Metadata, OpenPath, Owners, Xattr, get_xattrs, metadata, read_once,
};
use stook_timers::scope;
use stook_volume::{Dialect, FrameError, Header, encode, member_len, padding, stored_len};

use crate::attributes::HeaderFacts;
use crate::buffers::Buffers;
use crate::cause::{Cause, Since};
use crate::compress::{Compressor, EncodedBytes, LargeMemberFrames, first_group};
use crate::file_content::{holes, read_content, stream_content};
use crate::observer::{Failure, Observer};
use crate::packed::{DirectedPiece, Packed, Piece, SeveralNames};
use crate::plan::{Batch, PlannedMember, content_len, header_of};

pub(crate) struct Packer<'a> {
    pub(crate) source: &'a Directory,
    pub(crate) owners: &'a Owners,
    pub(crate) observer: &'a dyn Observer,
    pub(crate) buffers: &'a Buffers,
    pub(crate) dialect: Dialect,
    /// None if volumes are not compressed.
    pub(crate) compressor: Option<&'a Compressor>,
    pub(crate) links: Links,
    pub(crate) xattrs: bool,
    /// Since when files may have changed. What was planned is looked at before hours are spent on a large file.
    pub(crate) since: Since,
    /// False where the numbers of file systems are of another machine.
    pub(crate) compares_filesystems: bool,
    /// True once it was noted that some attributes cannot be read.
    pub(crate) has_noted: AtomicBool,
}

impl Packer<'_> {
    pub(crate) fn pack(&self, batch: &Batch<'_>, output: &mut Output<'_, DirectedPiece>) {
        let _scope = scope!("pack");
        let Some(first) = batch.members.first() else {
            output.send(Piece::EndOfStream.of(batch.stream));
            return;
        };
        let mut opened = OpenPath::new(self.source);
        if batch.is_large {
            let member = first.planned();
            let mut send = |piece: Piece| output.send(piece.of(batch.stream));
            if let Err(failure) = self.pack_large(&member, &mut opened, &mut send) {
                self.fail(&self.exact(failure, &member, &mut opened));
                send(Piece::Abort);
            }
            return;
        }
        let mut bytes = self.buffers.take(batch.buffer_len);
        let mut members = Vec::with_capacity(batch.members.len());
        let mut contents = Vec::with_capacity(batch.members.len());
        for member in &batch.members {
            if self.observer.is_interrupted() {
                // The rest of the run is void.
                return;
            }
            let member = member.planned();
            let start = bytes.len();
            match self.pack_small(&member, &mut opened, &mut bytes) {
                Ok((packed, content)) => {
                    contents.extend(content.map(|place| (members.len(), place)));
                    members.push(packed);
                }
                Err(failure) => {
                    bytes.truncate(start);
                    self.fail(&self.exact(failure, &member, &mut opened));
                }
            }
            advance(1);
        }
        take_md5s(&bytes, &contents, &mut members);
        match self.compressor {
            None => output.send(Piece::Members { bytes, members }.of(batch.stream)),
            Some(compressor) => {
                let mut send = |piece: Piece| output.send(piece.of(batch.stream));
                self.send_frames(compressor, &bytes, members, &mut send);
                self.buffers.give(bytes);
                true
            }
        };
    }

    /// Sends members in frames, as many in one as there is room for.
    fn send_frames(
        &self,
        compressor: &Compressor,
        bytes: &[u8],
        mut members: Vec<Packed>,
        send: &mut dyn FnMut(Piece) -> bool,
    ) {
        let mut start = 0;
        while !members.is_empty() {
            let (count, place) = first_group(&members, start);
            start = place.end;
            let rest = members.split_off(count);
            let group = std::mem::replace(&mut members, rest);
            match compressor.compress(&bytes[place], self.buffers) {
                Ok(encoded) => {
                    let members = group;
                    if !send(Piece::Frames { encoded, members }) {
                        return;
                    }
                }
                Err(error) => {
                    let cause = Cause::from(error);
                    for member in group {
                        self.fail(&Failure::new("archive", &member.name, cause.clone()));
                    }
                }
            }
        }
    }

    /// A file that was given up because the user has ended the run is not at fault.
    fn fail(&self, failure: &Failure) {
        if !self.observer.is_interrupted() {
            self.observer.failed(failure);
        }
    }

    /// Returns the failure of a member as what it is: what took the place of a file makes calls fail in ways that say
    /// something else, such as a link that is not followed, or a fifo that has no content.
    fn exact(
        &self,
        failure: Failure,
        member: &PlannedMember<'_>,
        opened: &mut OpenPath<'_>,
    ) -> Failure {
        if !matches!(failure.cause, Cause::Io(_) | Cause::Shrank) {
            return failure;
        }
        let now = self
            .open_directory(member.directory, opened)
            .and_then(|directory| directory.metadata(member.name, self.links));
        match now.map(|now| self.change(&member.metadata, &now)) {
            Ok(Some(cause @ Cause::Replaced { .. })) => {
                Failure::new("archive", &member.path, cause)
            }
            _ => failure,
        }
    }

    /// Appends a whole member. If it has content without holes, its MD5 is left to be taken together with
    /// those of the other members; its place in the buffer is returned.
    fn pack_small(
        &self,
        member: &PlannedMember<'_>,
        opened: &mut OpenPath<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<(Packed, Option<Range<usize>>), Failure> {
        let start = bytes.len();
        let (mut content, mut header_len) = (None, None);
        let mut header = header_of(member, self.owners, self.dialect);
        let mut packed = self.packed(member, &header);
        match member.metadata.kind {
            FileKind::File => {
                let file = self.open(member, opened)?;
                self.look_into(&file, member, &mut header)?;
                self.encode(&header, bytes)?;
                packed.several_names = self.several_names(member, &header, bytes.len() - start);
                let data = bytes.len();
                header_len = Some(data - start);
                packed.md5 = read_content(&file, &header, self.observer, bytes)
                    .map_err(|error| self.not_read(&file, member, &error))?;
                self.check_unchanged(&file, member)?;
                content = packed.md5.is_none().then_some(data..bytes.len());
                bytes.resize(bytes.len() + pad(stored_len(&header, self.dialect)), 0);
            }
            FileKind::Symlink => {
                let directory = self.directory(member.directory, member, opened)?;
                header.target = directory
                    .read_link(member.name)
                    .map_err(|error| unreadable(member, &error))?;
                header.xattrs = self.entry_xattrs(member, opened)?;
                self.encode(&header, bytes)?;
            }
            FileKind::Directory => {
                if self.xattrs {
                    header.xattrs = self.directory_xattrs(member, opened)?;
                }
                self.encode(&header, bytes)?;
            }
            _ => {
                header.xattrs = self.entry_xattrs(member, opened)?;
                self.encode(&header, bytes)?;
            }
        }
        packed.len = (bytes.len() - start) as u64;
        let header_len = header_len.unwrap_or(bytes.len() - start);
        packed.facts = HeaderFacts::new(header, header_len, self.dialect);
        Ok((packed, content))
    }

    fn pack_large(
        &self,
        member: &PlannedMember<'_>,
        opened: &mut OpenPath<'_>,
        send: &mut dyn FnMut(Piece) -> bool,
    ) -> Result<(), Failure> {
        let mut header = header_of(member, self.owners, self.dialect);
        let mut packed = self.packed(member, &header);
        let file = self.open(member, opened)?;
        if self.since == Since::Planned {
            self.check_unchanged(&file, member)?;
        }
        read_once(&file);
        self.look_into(&file, member, &mut header)?;
        let mut bytes = Vec::new();
        self.encode(&header, &mut bytes)?;
        packed.several_names = self.several_names(member, &header, bytes.len());
        packed.len = member_len(&header, self.dialect);
        packed.facts = HeaderFacts::new(header.clone(), bytes.len(), self.dialect);
        let padding = vec![0; pad(stored_len(&header, self.dialect))];
        let not_compressed = |error| Failure::new("archive", &member.path, Cause::from(error));
        let mut frames = self
            .compressor
            .map(|it| LargeMemberFrames::new(it, self.buffers));
        let encoded = encode_part(&mut frames, bytes).map_err(not_compressed)?;
        let member_of_piece = Box::new(packed);
        if !send(Piece::Begin {
            encoded,
            member: member_of_piece,
        }) {
            return Ok(());
        }
        let mut send_slice = |bytes| {
            let encoded = encode_part(&mut frames, bytes).map_err(Cause::from)?;
            Ok(encoded.bytes.is_empty() || send(Piece::Slice(encoded)))
        };
        let for_reading = (self.buffers, self.observer);
        let streamed = stream_content(&file, &header, for_reading, &mut send_slice);
        let Some(md5) = streamed.map_err(|error| self.not_read(&file, member, &error))? else {
            return Ok(());
        };
        self.check_unchanged(&file, member)?;
        let encoded = match &mut frames {
            Some(frames) => frames.finish(&padding).map_err(not_compressed)?,
            None => EncodedBytes::plain(padding),
        };
        send(Piece::End { encoded, md5 });
        Ok(())
    }

    /// A directory that may not be opened can still be archived: its files are failures of their own,
    /// unless they were excluded.
    fn directory_xattrs(
        &self,
        member: &PlannedMember<'_>,
        opened: &mut OpenPath<'_>,
    ) -> Result<Vec<Xattr>, Failure> {
        match self.open_directory(&member.path, opened) {
            Ok(directory) => get_xattrs(directory).map_err(|error| unreadable(member, &error)),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Vec::new()),
            Err(error) => Err(Failure::io("open", &member.path, &error)),
        }
    }

    /// Returns the attributes of a symbolic link, a fifo or a device, none of which is opened.
    fn entry_xattrs(
        &self,
        member: &PlannedMember<'_>,
        opened: &mut OpenPath<'_>,
    ) -> Result<Vec<Xattr>, Failure> {
        if !self.xattrs || self.dialect == Dialect::Zstash {
            return Ok(Vec::new());
        }
        let directory = self.directory(member.directory, member, opened)?;
        match directory.xattrs(member.name) {
            // The entry is there, so it is `/proc` that is not.
            Err(error)
                if error.kind() == io::ErrorKind::NotFound
                    && directory.metadata(member.name, Links::Refuse).is_ok() =>
            {
                if !self.has_noted.swap(true, Ordering::Relaxed) {
                    let text = "there is no `/proc`: attributes of links, fifos and devices are not archived";
                    self.observer.noted(text);
                }
                Ok(Vec::new())
            }
            other => other.map_err(|error| unreadable(member, &error)),
        }
    }

    fn encode(&self, header: &Header, bytes: &mut Vec<u8>) -> Result<(), Failure> {
        let encoded = encode(header, self.dialect, bytes);
        encoded
            .map(drop)
            .map_err(|error| Failure::new("archive", &header.name, error))
    }

    /// Takes the header as the plan knows it.
    fn packed(&self, member: &PlannedMember<'_>, header: &Header) -> Packed {
        Packed {
            name: member.path.clone(),
            size: content_len(&member.metadata),
            mtime: member.metadata.mtime.into(),
            md5: None,
            len: 0,
            planned: member_len(header, self.dialect),
            several_names: None,
            facts: HeaderFacts::default(),
        }
    }

    fn several_names(
        &self,
        member: &PlannedMember<'_>,
        header: &Header,
        header_len: usize,
    ) -> Option<Box<SeveralNames>> {
        let can_be_link = self.dialect == Dialect::Zstash
            && self.links == Links::Refuse
            && member.metadata.links > 1;
        can_be_link.then(|| {
            Box::new(SeveralNames {
                identity: member.metadata.identity(),
                header: header.clone(),
                header_len,
            })
        })
    }

    fn open(&self, member: &PlannedMember<'_>, opened: &mut OpenPath<'_>) -> Result<File, Failure> {
        let directory = self.directory(member.directory, member, opened)?;
        let _scope = scope!("open");
        directory
            .open_file(member.name, self.links)
            .map_err(|error| Failure::io("open", &member.path, &error))
    }

    fn directory<'o>(
        &self,
        path: &[u8],
        member: &PlannedMember<'_>,
        opened: &'o mut OpenPath<'_>,
    ) -> Result<&'o Directory, Failure> {
        self.open_directory(path, opened)
            .map_err(|error| Failure::io("open", &member.path, &error))
    }

    /// Returns the open directory; consecutive members are mostly in the same one, or near it.
    fn open_directory<'o>(
        &self,
        path: &[u8],
        opened: &'o mut OpenPath<'_>,
    ) -> io::Result<&'o Directory> {
        let _scope = scope!("open directory");
        opened.open(path, self.links)
    }

    /// The file must still be what the survey saw: this covers every change from then until now.
    fn check_unchanged(&self, file: &File, member: &PlannedMember<'_>) -> Result<(), Failure> {
        let _scope = scope!("look again");
        let now = metadata(file).map_err(|error| Failure::io("look at", &member.path, &error))?;
        let change = self.change(&member.metadata, &now);
        change.map_or(Ok(()), |cause| {
            Err(Failure::new("archive", &member.path, cause))
        })
    }

    fn change(&self, before: &Metadata, now: &Metadata) -> Option<Cause> {
        let is_on_same = now.filesystem == before.filesystem || !self.compares_filesystems;
        let is_same_file = now.inode == before.inode && is_on_same && now.kind == before.kind;
        let since = self.since;
        if !is_same_file {
            Some(Cause::Replaced { since })
        } else if now.size != before.size {
            Some(Cause::Resized {
                before: before.size,
                now: now.size,
                since,
            })
        } else {
            (now.mtime != before.mtime).then_some(Cause::Modified { since })
        }
    }

    /// Returns why content could not be read: of a file that was planned and ends early, how long it was and is.
    fn not_read(&self, file: &File, member: &PlannedMember<'_>, error: &io::Error) -> Failure {
        if self.since == Since::Planned
            && matches!(Cause::from(error), Cause::Shrank)
            && let Err(changed) = self.check_unchanged(file, member)
        {
            return changed;
        }
        unreadable(member, error)
    }

    /// Adds to the header what only the open file shows: attributes and holes.
    fn look_into(
        &self,
        file: &File,
        member: &PlannedMember<'_>,
        header: &mut Header,
    ) -> Result<(), Failure> {
        if self.dialect == Dialect::Zstash {
            return Ok(());
        }
        if self.xattrs {
            let _scope = scope!("xattrs");
            header.xattrs = get_xattrs(file).map_err(|error| unreadable(member, &error))?;
        }
        if member.metadata.blocks.saturating_mul(512) < member.metadata.size {
            header.sparse = holes(file, header.size, self.observer)
                .map_err(|error| unreadable(member, &error))?;
        }
        Ok(())
    }
}

/// Returns what of a large member goes into the volume now.
fn encode_part(
    frames: &mut Option<LargeMemberFrames<'_>>,
    bytes: Vec<u8>,
) -> Result<EncodedBytes, FrameError> {
    match frames {
        Some(frames) => frames.push(bytes),
        None => Ok(EncodedBytes::plain(bytes)),
    }
}

/// Takes the MD5s of all contents of a batch at once, which is several times faster than one by one.
fn take_md5s(bytes: &[u8], contents: &[(usize, Range<usize>)], members: &mut [Packed]) {
    let _scope = scope!("md5");
    let messages: Vec<&[u8]> = contents
        .iter()
        .map(|(_, place)| &bytes[place.clone()])
        .collect();
    for ((member, _), md5) in contents.iter().zip(md5_many(&messages)) {
        members[*member].md5 = Some(md5);
    }
}

fn unreadable(member: &PlannedMember<'_>, error: &io::Error) -> Failure {
    Failure::io("read", &member.path, error)
}

fn pad(len: u64) -> usize {
    usize::try_from(padding(len)).expect("padding is less than a block")
}
