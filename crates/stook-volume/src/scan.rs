//! Walks all members of a volume and finds its way past damage.
//!
//! A member is taken for what its header says if a valid header, the end marker or the end of the
//! volume stands where it ends. If not, and members begin inside its content, that content was
//! cut off when it was written (the header of zstash states the size before the file shrank) and
//! the member is damage. Without such members the one whose header is broken is the damage.

use std::collections::VecDeque;

use crate::decode::{Found, Member};
use crate::error::VolumeError;
use crate::header::Kind;
use crate::salvage::{Content, Look, Salvage, Search};
use crate::source::{ReadAt, Window};

/// Bytes read at a time: several small members, or little next to a big one.
const CHUNK: usize = 32 << 10;

/// What the scanner came upon, in the order of the volume.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all events are members")]
pub enum Event {
    /// A member.
    Member(Member),
    /// Bytes that hold no readable member; the next event begins after them.
    Damage {
        /// First byte: of the damaged member's header where there is one.
        offset: u64,
        /// Number of bytes, 0 if only the end marker is missing, or the members are read in spite of it.
        len: u64,
        /// What is wrong.
        reason: VolumeError,
    },
    /// The end marker; always the last event, and absent from a volume that is cut off.
    End {
        /// Where it begins: the next member could be written here.
        offset: u64,
    },
}

/// How far the scanner trusts a member whose end looks right.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Depth {
    /// Fully; only headers are read.
    #[default]
    Headers,
    /// Not before its content was searched for members that it swallowed: the end of a content that
    /// was cut off falls on a later header by chance. Reads the whole volume. A nested tar is
    /// told apart by its end marker, or by filling the content from its first byte.
    Contents,
}

/// An iterator over the members of a volume; see [`Event`].
///
/// An error is a failure of the source, and the last item.
pub struct Scanner<'a, S: ReadAt + ?Sized> {
    window: Window<'a, S>,
    depth: Depth,
    /// Where the next event is looked for.
    at: u64,
    /// What stands there, if that is known already.
    ahead: Option<Look>,
    queue: VecDeque<Event>,
    is_done: bool,
}

impl<'a, S: ReadAt + ?Sized> Scanner<'a, S> {
    /// Begins at `offset`, the first byte of a volume or of any member.
    pub fn new(source: &'a S, offset: u64) -> Self {
        Self {
            window: Window::new(source, CHUNK),
            depth: Depth::default(),
            at: offset,
            ahead: None,
            queue: VecDeque::new(),
            is_done: false,
        }
    }

    /// Sets how far members are trusted.
    #[must_use]
    pub fn with_depth(mut self, depth: Depth) -> Self {
        self.depth = depth;
        self
    }

    fn salvage(&mut self) -> Salvage<'_, 'a, S> {
        Salvage {
            window: &mut self.window,
        }
    }

    fn step(&mut self) -> Result<Event, VolumeError> {
        let at = self.at;
        let look = match self.ahead.take() {
            Some(look) => look,
            None => self.salvage().look(at)?,
        };
        match look {
            Look::Member(found) => self.member(*found),
            Look::EndMarker => self.end_marker(at),
            Look::EndOfFile => Ok(self.finish(at, at, VolumeError::Truncated { offset: at })),
            Look::Broken(reason) => self.broken(at, reason),
        }
    }

    fn member(&mut self, found: Found) -> Result<Event, VolumeError> {
        let offset = found.member.offset;
        let event = self.trust(found.member)?;
        let Some(reason) = found.ignored else {
            return Ok(event);
        };
        self.queue.push_front(event);
        Ok(Event::Damage {
            offset,
            len: 0,
            reason,
        })
    }

    /// Finds out whether a member is what its header says.
    fn trust(&mut self, member: Member) -> Result<Event, VolumeError> {
        let Member {
            data_offset,
            data_len,
            end,
            ..
        } = member;
        let look = self.salvage().look(end)?;
        let lands = self.salvage().lands(end, &look)?;
        if lands && (self.depth == Depth::Headers || data_len == 0) {
            return Ok(self.go_on(Event::Member(member), end, Some(look)));
        }
        let content = Content {
            start: data_offset,
            end,
            lands,
        };
        match self.salvage().search(data_offset, end, Some(content))? {
            Search::Found(next) => Ok(self.cut(member, next)),
            Search::Nothing(stop) if lands || stop >= end => {
                Ok(self.go_on(Event::Member(member), end, Some(look)))
            }
            Search::Nothing(file_end) => {
                let data_end = data_offset.saturating_add(data_len);
                let is_whole = data_end <= file_end;
                let damage_start = if is_whole { data_end } else { member.offset };
                let damage = self.finish(
                    damage_start,
                    file_end,
                    VolumeError::Truncated { offset: file_end },
                );
                if !is_whole {
                    return Ok(damage);
                }
                self.queue.push_back(damage);
                Ok(Event::Member(member))
            }
        }
    }

    /// Reports a member in whose content the next one begins.
    fn cut(&mut self, mut member: Member, next: u64) -> Event {
        if member.header.kind == Kind::HardLink && next == member.data_offset {
            // Some writers state the size of the shared content but do not store it.
            member.header.size = 0;
            member.data_len = 0;
            member.end = next;
            return self.go_on(Event::Member(member), next, None);
        }
        let reason = VolumeError::CutShort {
            name: member.header.name,
            next,
        };
        self.go_on(
            Event::Damage {
                offset: member.offset,
                len: next - member.offset,
                reason,
            },
            next,
            None,
        )
    }

    fn broken(&mut self, at: u64, reason: VolumeError) -> Result<Event, VolumeError> {
        let mut search = self.salvage().after_broken(at)?;
        if let Search::Nothing(from) = search {
            search = self.salvage().search(from, u64::MAX, None)?;
        }
        Ok(match search {
            Search::Found(next) => self.go_on(
                Event::Damage {
                    offset: at,
                    len: next - at,
                    reason,
                },
                next,
                None,
            ),
            Search::Nothing(file_end) => self.finish(at, file_end, reason),
        })
    }

    fn end_marker(&mut self, at: u64) -> Result<Event, VolumeError> {
        let (stop, is_end) = self.salvage().skip_zeros(at)?;
        if is_end {
            self.is_done = true;
            return Ok(Event::End { offset: at });
        }
        Ok(match self.salvage().search(at, u64::MAX, None)? {
            Search::Found(next) => {
                let reason = VolumeError::EarlyEnd { offset: at };
                self.go_on(
                    Event::Damage {
                        offset: at,
                        len: next - at,
                        reason,
                    },
                    next,
                    None,
                )
            }
            Search::Nothing(file_end) => {
                let damage = self.finish(stop, file_end, VolumeError::AfterEnd { offset: stop });
                self.queue.push_back(Event::End { offset: at });
                damage
            }
        })
    }

    fn go_on(&mut self, event: Event, next: u64, ahead: Option<Look>) -> Event {
        self.at = next;
        self.ahead = ahead;
        event
    }

    /// Ends the scan with damage up to the end of the volume.
    fn finish(&mut self, offset: u64, file_end: u64, reason: VolumeError) -> Event {
        self.is_done = true;
        Event::Damage {
            offset,
            len: file_end.saturating_sub(offset),
            reason,
        }
    }
}

impl<S: ReadAt + ?Sized> Iterator for Scanner<'_, S> {
    type Item = Result<Event, VolumeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(event) = self.queue.pop_front() {
            return Some(Ok(event));
        }
        if self.is_done {
            return None;
        }
        let event = self.step();
        self.is_done |= event.is_err();
        Some(event)
    }
}
