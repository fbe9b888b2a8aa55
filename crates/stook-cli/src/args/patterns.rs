//! What is typed to choose by path, and the one text that explains it.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Behind the options of every command that takes patterns.
pub(crate) const PATTERNS: &str = "\
Patterns:\n\
A pattern is compared with the path of an entry below the tree, like Python's fnmatch: `*` matches any text, also \
across `/`; `?` matches one character; `[abc]` and `[a-z]` match one of these; `[!abc]` matches one character that is \
none of these. Patterns are case-sensitive, and there is no escape character. `*.nc` matches such files in every \
directory, `run/*.nc` all of them below `run`.\n\n\
A pattern matches an entry if it matches its path, or the path of a directory above it: `run` selects the directory \
`run` and everything in it, also in an archive that has no member `run`. What is both included and excluded is \
excluded. A name with brackets also matches itself: `a[1]`.\n\n\
`./run`, `/run` and `run/` mean the same as `run`, and `.` is the tree itself. A pattern that matches nothing is \
tried again without the name of the tree in front: `stook remove scratch --exclude scratch/keep` keeps `keep`, \
because `--dry-run` and `walk` print paths in that form.\n\n\
A pattern that matches nothing causes a warning. `remove` checks patterns first: if one matches nothing, it removes \
nothing and exits with status 1. `list`, `extract` and `check` also exit with status 1, before they print, write or \
check anything.\n\n\
A file for `--exclude-from` has one pattern per line. Empty lines and lines that begin with `#` are ignored; \
`./#name` matches a name that begins so. `-` is stdin. `remove` refuses a file without any pattern.\n\n\
With `--compat zstash` a pattern matches only whole paths, as in zstash, and `run/` means `run/*`.";

// Which entries, by path.
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
