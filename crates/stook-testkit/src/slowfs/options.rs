//! Options of a slow file system: how long each kind of request takes, how many it serves at a time, what is cached.
//!
//! The words of the command line are read here too, so that the program and a test mean the same by `1ms`.

use std::num::NonZeroUsize;
use std::time::Duration;

macro_rules! ops {
    ($($variant:ident $name:literal $doc:literal,)*) => {
        /// A kind of request that the kernel sends to a file system.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Op {
            $(#[doc = $doc] $variant,)*
        }

        impl Op {
            /// Every kind, in the order of the declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// Returns the name as the command line and the counts have it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

ops! {
    Lookup "lookup" "Name in a directory to inode and attributes; what `lstat` of an uncached path costs per component.",
    Getattr "getattr" "Attributes of a known inode, when those in the kernel's cache are too old.",
    Setattr "setattr" "Mode, owner, size or times.",
    Readlink "readlink" "Target of a symbolic link.",
    Mknod "mknod" "Fifo, socket, device, or a file made without opening it.",
    Mkdir "mkdir" "New directory.",
    Unlink "unlink" "Removal of a name that is not a directory.",
    Rmdir "rmdir" "Removal of a directory.",
    Symlink "symlink" "New symbolic link.",
    Rename "rename" "Rename, with any flags.",
    Link "link" "One more name of an inode.",
    Open "open" "Open of a file that exists, with truncation if asked.",
    Create "create" "New file, opened in the same request.",
    Read "read" "One read, as long as the kernel asks for.",
    Write "write" "One write.",
    Flush "flush" "Close of a descriptor; what a network file system calls close-to-open.",
    Release "release" "Last close of an open file; nobody waits for it.",
    Fsync "fsync" "Sync of a file.",
    Opendir "opendir" "Open of a directory.",
    Readdir "readdir" "One `getdents` round trip.",
    Releasedir "releasedir" "Last close of a directory; nobody waits for it.",
    Fsyncdir "fsyncdir" "Sync of a directory.",
    Statfs "statfs" "Size and room of the file system.",
    Setxattr "setxattr" "Set an extended attribute.",
    Getxattr "getxattr" "Read an extended attribute.",
    Listxattr "listxattr" "List extended attributes.",
    Removexattr "removexattr" "Remove an extended attribute.",
    Fallocate "fallocate" "Reserve or punch space.",
    Lseek "lseek" "Seek for data or a hole.",
    CopyFileRange "copy_file_range" "Copy within the server.",
    Forget "forget" "The kernel drops an inode from its cache; has no answer, so no latency.",
}

/// Number of kinds of requests.
pub(super) const OPS: usize = Op::ALL.len();

impl Op {
    /// Returns the kind with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|op| op.name() == name)
    }

    /// Tells whether a program waits for the answer.
    fn is_waited_for(self) -> bool {
        !matches!(self, Self::Forget | Self::Release | Self::Releasedir)
    }
}

/// How a slow file system behaves.
#[derive(Clone, Debug)]
pub struct Options {
    pub(super) latencies: [Duration; OPS],
    pub(super) slots: Option<NonZeroUsize>,
    pub(super) ttl: Duration,
    pub(super) readers: NonZeroUsize,
    pub(super) loses_writes: bool,
}

/// Threads that take requests. With 128 clients on 2 cores, 1, 2 and 4 gave the same 60,000 `lstat` a second; two of
/// them let one wait for a disk.
const READERS: NonZeroUsize = NonZeroUsize::new(2).expect("two is not zero");

impl Options {
    /// Answers every request that a program waits for after `latency`, any number of them at a time.
    ///
    /// Attributes and names are cached by the kernel for one second, as NFS and FUSE do by default.
    #[must_use]
    pub fn new(latency: Duration) -> Self {
        let mut latencies = [Duration::ZERO; OPS];
        for op in Op::ALL.iter().filter(|op| op.is_waited_for()) {
            latencies[*op as usize] = latency;
        }
        Self {
            latencies,
            slots: None,
            ttl: Duration::from_secs(1),
            readers: READERS,
            loses_writes: false,
        }
    }

    /// Says only as a file is closed that there was no room for it, as NFS may.
    #[must_use]
    pub fn losing_writes(mut self) -> Self {
        self.loses_writes = true;
        self
    }

    /// Sets the latency of one kind of request. That of [`Op::Forget`] is never used.
    #[must_use]
    pub fn op(mut self, op: Op, latency: Duration) -> Self {
        self.latencies[op as usize] = latency;
        self
    }

    /// Serves at most `slots` requests at a time, the others wait in order of arrival.
    ///
    /// A request holds its slot for its latency; one without latency needs none.
    #[must_use]
    pub fn queue(mut self, slots: NonZeroUsize) -> Self {
        self.slots = Some(slots);
        self
    }

    /// Sets how long the kernel may cache names and attributes.
    ///
    /// With zero, every use of a path asks again for each of its components, and for the mode of each directory on it.
    #[must_use]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets the number of threads that take requests and do the work in the source.
    #[must_use]
    pub fn readers(mut self, readers: NonZeroUsize) -> Self {
        self.readers = readers;
        self
    }
}

/// Units of [`parse_duration`] with their nanoseconds; longer ones first where one is the end of another.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// Reads `1ms`, `500us`, `0.5s` or `0`.
///
/// # Errors
/// A sentence for people when the text is no duration.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no duration: write it as `1ms`, `500us` or `2s`");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let (number, nanoseconds) = UNITS
        .iter()
        .find_map(|(unit, nanoseconds)| Some((text.strip_suffix(unit)?, nanoseconds)))
        .ok_or_else(wrong)?;
    let is_plain = number.starts_with(|first: char| first.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let number: f64 = if is_plain { number.parse().ok() } else { None }.ok_or_else(wrong)?;
    Duration::try_from_secs_f64(number * nanoseconds / 1e9).map_err(|error| {
        let wrong = wrong();
        format!("{wrong} ({error})")
    })
}

/// Reads `open=2ms,read=500us`.
///
/// # Errors
/// A sentence for people when a kind or a duration is unknown.
pub fn parse_latencies(text: &str) -> Result<Vec<(Op, Duration)>, String> {
    text.split(',')
        .map(|part| {
            let (name, latency) = part
                .split_once('=')
                .ok_or_else(|| format!("`{part}` is not KIND=LATENCY"))?;
            let op = Op::named(name)
                .filter(|op| *op != Op::Forget)
                .ok_or_else(|| format!("`{name}` is no kind of request that is answered"))?;
            Ok((op, parse_duration(latency)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Op, Options, parse_duration, parse_latencies};
    use std::time::Duration;

    #[test]
    fn durations_have_a_number_and_a_unit() {
        let cases = [
            ("1ms", 1_000_000),
            ("500us", 500_000),
            ("0.5ms", 500_000),
            ("2s", 2_000_000_000),
            ("7ns", 7),
            ("0s", 0),
            ("0", 0),
        ];
        for (text, nanoseconds) in cases {
            assert_eq!(
                parse_duration(text),
                Ok(Duration::from_nanos(nanoseconds)),
                "{text}"
            );
        }
        for text in [
            "", "1", "ms", "-1ms", "1 ms", "1e3s", ".5s", "1.2.3s", "infs",
        ] {
            let error = parse_duration(text).unwrap_err();
            assert!(error.contains("no duration"), "{text}: {error}");
        }
        assert!(parse_duration(&format!("{}s", "9".repeat(30))).is_err());
    }

    #[test]
    fn latencies_are_given_by_kind() {
        let parsed = parse_latencies("open=2ms,copy_file_range=0").unwrap();
        assert_eq!(
            parsed,
            [
                (Op::Open, Duration::from_millis(2)),
                (Op::CopyFileRange, Duration::ZERO)
            ]
        );
        for text in ["open", "opens=1ms", "forget=1ms", "open=1", "open=1ms,"] {
            assert!(parse_latencies(text).is_err(), "{text}");
        }
    }

    #[test]
    fn nobody_waits_for_a_release_unless_asked() {
        let second = Duration::from_secs(1);
        let options = Options::new(second);
        for op in Op::ALL {
            let waits = options.latencies[*op as usize] == second;
            let is_quiet = matches!(op, Op::Forget | Op::Release | Op::Releasedir);
            assert_ne!(waits, is_quiet, "{op:?}");
            assert_eq!(Op::named(op.name()), Some(*op));
        }
        let options = options.op(Op::Release, second);
        assert_eq!(options.latencies[Op::Release as usize], second);
    }
}
