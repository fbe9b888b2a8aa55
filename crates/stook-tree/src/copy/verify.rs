//! Comparing a tree with its copy, byte by byte.

use std::fs::File;
use std::path::Path;

use stook_pool::advance;
use stook_sys::{
    Context, Directory, FileKind, Links as Follow, Metadata, SysError, append_some_at, drop_cached,
    get_xattrs,
};
use stook_timers::scope;

use super::content::with_buffer;
use super::context::CopyContext;
use super::entry::{have_same_target, look};
use super::fault::{At, Fault, READ_ATTRIBUTES, Side};
use super::options::{CopyObserver, CopyOptions};
use super::pair_walk::PairWalk;
use super::roots::Roots;
use super::state::{DirectoryState, Existing, PairNode, reach};
use super::visitor::{Entrance, Entry, Later, Outcome, PairVisitor};
use crate::Reason;
use crate::metadata::{Original, User, without_shadows};
use crate::traverse::HandleBudget;

/// What was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verified {
    /// Entries of all kinds that are the same.
    pub entries: u64,
    /// Bytes of the files among them.
    pub bytes: u64,
}

/// What is read of each side at a time.
const PIECE: usize = 256 << 10;

const VERIFY: &str = "verify";

/// Compares `dest` with the `tree` that it is a copy of: the kind of every entry, the content of every file, the target
/// of every link; owners, modes, access control lists and attributes of all, as far as the user could set them. What
/// differs is reported to the observer as a failure of the operation "verify".
///
/// What of the copy is on the disk is read from there, not from memory.
///
/// # Errors
/// If one of them is not there, or what was written cannot be brought to the disk.
///
/// # Cost
/// Both sides are read as a whole.
pub fn verify(
    tree: &Path,
    dest: &Path,
    options: &CopyOptions,
    observer: &dyn CopyObserver,
) -> Result<Verified, SysError> {
    let _scope = scope!("verify");
    let roots = Roots::to_compare(tree, dest)?;
    if let Some(copy) = &roots.pair.copy {
        copy.sync_file_system().context("sync", dest)?;
    }
    let metadata = roots.pair.source.own_metadata().context("look at", tree)?;
    let leave_out = roots.leave_out().context("look at", dest)?;
    let context = CopyContext::new(options, observer, roots.paths);
    let budget = HandleBudget::new();
    let comparing = Comparing {
        user: User::current(),
        observer,
    };
    let walk = PairWalk {
        context: &context,
        visitor: &comparing,
        leave_out,
    };
    let state = DirectoryState::of_source(metadata);
    match &roots.single {
        None => walk.over_trees(VERIFY, roots.pair, state, &budget),
        Some(single) => walk.over_single(roots.pair, state, single),
    }
    let done = context.copied();
    Ok(Verified {
        entries: done.entries + done.unchanged,
        bytes: done.bytes,
    })
}

struct Comparing<'a> {
    user: User,
    /// Asked between two pieces of a file whether to go on.
    observer: &'a dyn CopyObserver,
}

impl<'h> PairVisitor<'h> for Comparing<'_> {
    fn enter(
        &self,
        entrance: &Entrance<'_, 'h>,
        _source: &Directory,
        metadata: Metadata,
    ) -> Result<(Option<Directory>, DirectoryState), Fault> {
        let copy = match entrance.copy {
            Some(above) => above.open_beneath(entrance.name).at(Side::Copy, VERIFY)?,
            None => return Err(different(Reason::Missing)),
        };
        Ok((Some(copy), DirectoryState::of_source(metadata)))
    }

    fn entry(&self, entry: &Entry<'_, 'h>, later: &mut Vec<Later<'h>>) -> Result<Outcome, Fault> {
        let metadata = entry.source.metadata(entry.name, Follow::Refuse);
        let metadata = metadata.at(Side::Source, "look at")?;
        match metadata.kind {
            FileKind::Directory => return Ok(Outcome::Directory),
            FileKind::Socket => return Ok(Outcome::Unchanged),
            _ => {}
        }
        if entry.waits(&metadata, later) {
            return Ok(Outcome::Later);
        }
        let copy = entry.copy.ok_or_else(|| different(Reason::Missing))?;
        let there = look(copy, entry.new_name).at(Side::Copy, "look at")?;
        let there = there.ok_or_else(|| different(Reason::Missing))?;
        if there.kind != metadata.kind || there.device != metadata.device {
            return Err(different(Reason::KindDiffers));
        }
        let outcome = match metadata.kind {
            FileKind::File => Outcome::Done {
                bytes: compare(entry, copy, &metadata, &|| self.observer.is_interrupted())?,
                is_reported: false,
            },
            FileKind::Symlink if !have_same_target(entry, copy)? => {
                return Err(different(Reason::TargetDiffers));
            }
            _ => Outcome::Unchanged,
        };
        match self.user.difference(entry, copy, &metadata, &there)? {
            Some(why) => Err(different(why)),
            None => Ok(outcome),
        }
    }

    fn leave(&self, node: &PairNode<'h>, copy: Option<Directory>) -> Result<(), Fault> {
        let source = reach(node, Side::Source)?;
        let reached = match &copy {
            Some(_) => None,
            None => reach(node, Side::Copy)?,
        };
        let (Some(source), Some(copy)) = (source, copy.as_ref().or(reached.as_deref())) else {
            return Ok(());
        };
        self.compare_directories(&node.data, &source, copy)
    }
}

impl Comparing<'_> {
    fn compare_directories(
        &self,
        state: &DirectoryState,
        source: &Directory,
        copy: &Directory,
    ) -> Result<(), Fault> {
        let attributes = get_xattrs(source).at(Side::Source, READ_ATTRIBUTES)?;
        let existing = Existing::at(copy)?;
        let original = Original {
            metadata: &state.metadata,
            attributes: &without_shadows(attributes),
        };
        let has = existing.current();
        match self
            .user
            .changes(original, &has, &state.methods.refused)
            .why()
        {
            Some(why) => Err(different(why)),
            None => Ok(()),
        }
    }
}

fn different(why: Reason) -> Fault {
    Fault::new(Side::Copy, VERIFY, why.into())
}

/// Compares the content of two files; returns their length.
fn compare(
    entry: &Entry<'_, '_>,
    copy: &Directory,
    metadata: &Metadata,
    is_stopped: &dyn Fn() -> bool,
) -> Result<u64, Fault> {
    let source = entry.source.open_file(entry.name, Follow::Refuse);
    let source = source.at(Side::Source, "open")?;
    let copied = copy.open_file(entry.new_name, Follow::Refuse);
    let copied = copied.at(Side::Copy, "open")?;
    drop_cached(&copied, 0, metadata.size);
    with_buffer(|buffer| {
        let mut position = 0;
        loop {
            let (wanted, found) = read_both(&source, &copied, buffer, position)?;
            let is_same = buffer[..wanted] == buffer[wanted..wanted + found];
            if !is_same {
                let pairs = buffer[..wanted].iter().zip(&buffer[wanted..]);
                let same = pairs.take_while(|(wanted, found)| wanted == found).count();
                return Err(difference(position, same.min(found), wanted, found));
            }
            position += wanted as u64;
            advance(1);
            if wanted < PIECE {
                return Ok(position);
            }
            if is_stopped() {
                return Err(Fault::Stopped);
            }
        }
    })
}

/// Reads a piece of both files into the buffer, one behind the other.
fn read_both(
    source: &File,
    copied: &File,
    buffer: &mut Vec<u8>,
    position: u64,
) -> Result<(usize, usize), Fault> {
    buffer.clear();
    let mut read =
        |file, side| append_some_at(file, buffer, PIECE, PIECE, position).at(side, "read");
    Ok((read(source, Side::Source)?, read(copied, Side::Copy)?))
}

fn difference(position: u64, same: usize, wanted: usize, found: usize) -> Fault {
    let byte = position + same as u64;
    different(if same == found && found < wanted {
        Reason::EndsEarly(byte)
    } else if same == wanted && wanted < found {
        Reason::GoesOn(byte)
    } else {
        Reason::ContentDiffers(byte)
    })
}
