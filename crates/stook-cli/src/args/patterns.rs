//! What is typed to choose by path, and the one text that explains it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Behind the options of every command that takes patterns.
pub(crate) const PATTERNS: &str = "\
Patterns:\n\
A pattern is compared with the path of an entry below the tree, as Python's fnmatch does it: `*` stands for any \
text, also across `/`; `?` for one character; `[abc]` and `[a-z]` for one of these; `[!abc]` for one that is \
none of these. Upper and lower case differ, and there is no escape character. `*.nc` finds such files in every \
directory, `run/*.nc` all of them below `run`.\n\n\
A pattern matches an entry if it matches its path, or the path of a directory above it: `run` is the directory \
`run` and everything in it, also in an archive that has no member `run`. What is included and excluded is \
excluded. A name with brackets is found by itself, too: `a[1]`.\n\n\
`./run`, `/run` and `run/` find what `run` finds, and `.` is the tree itself. A pattern that matches nothing is \
tried without the name of the tree in front: `stook remove scratch --exclude scratch/keep` keeps `keep`, for \
that is how `--dry-run` and `walk` print it.\n\n\
A pattern that matches nothing causes a warning. `remove` looks at the names first: if a pattern matches nothing, \
it removes nothing and ends with status 1. `list`, `extract` and `check` end with status 1, too, before they print, \
write or check anything.\n\n\
A file for `--exclude-from` has one pattern on each line. Empty lines and lines that begin with `#` are left \
out; a name that begins so is `./#name`. `-` is stdin. `remove` refuses a file without any pattern.\n\n\
With `--compat zstash` a pattern matches whole paths only, as in zstash, and `run/` means `run/*`.";

/// Which entries, by path.
#[derive(Debug, ClapArgs)]
pub(crate) struct FilterArgs {
    /// Select paths that match, and everything below matching directories; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) include: Vec<OsString>,
    /// Leave out paths that match, and everything below matching directories, even if included; may be repeated
    #[arg(long, value_name = "PATTERN")]
    pub(crate) exclude: Vec<OsString>,
    /// Read patterns to exclude from FILE, one per line; `-` is stdin; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) exclude_from: Vec<PathBuf>,
}
