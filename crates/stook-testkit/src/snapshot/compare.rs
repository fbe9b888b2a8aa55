//! Comparison of two snapshots: which facts count, and the lines that say what differs.

use super::{Facts, Kind, Snapshot};
use crate::failure::shown;
use std::collections::BTreeSet;

/// A fact that a comparison can look at; kinds and names are always compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fact {
    /// Permission bits of everything but symbolic links.
    Mode,
    /// User and group.
    Owner,
    /// Size of regular files.
    Size,
    /// Modification time of everything but directories.
    Mtime,
    /// Modification time of directories.
    DirectoryMtime,
    /// MD5 of regular files.
    Content,
    /// Targets of symbolic links.
    Target,
    /// Numbers of devices.
    Device,
    /// Extended attributes.
    Xattrs,
    /// Which paths are hard links of each other.
    Links,
    /// Whether a file has holes.
    Holes,
}

/// Which directories count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Directories {
    /// All of them, with their facts.
    #[default]
    All,
    /// Only those with nothing in them, which is what zstash archives.
    Empty,
}

/// What a comparison looks at.
#[derive(Clone, Debug)]
pub struct Compare {
    facts: BTreeSet<Fact>,
    directories: Directories,
    mtime_tolerance_ns: u64,
}

impl Compare {
    /// Looks at everything but holes, which a file system may place as it likes.
    #[must_use]
    pub fn everything() -> Self {
        use Fact::{
            Content, Device, DirectoryMtime, Links, Mode, Mtime, Owner, Size, Target, Xattrs,
        };
        Self::only([
            Mode,
            Owner,
            Size,
            Mtime,
            DirectoryMtime,
            Content,
            Target,
            Device,
            Xattrs,
            Links,
        ])
    }

    /// Looks at names, kinds, bytes, targets and device numbers.
    #[must_use]
    pub fn content() -> Self {
        Self::only([Fact::Size, Fact::Content, Fact::Target, Fact::Device])
    }

    /// Looks at what a zstash archive keeps: no directories with contents, no links, times as doubles.
    #[must_use]
    pub fn zstash() -> Self {
        Self::content()
            .with(Fact::Mode)
            .with(Fact::Mtime)
            .directories(Directories::Empty)
            .mtime_tolerance_ns(1000)
    }

    /// Looks at these facts and no others.
    #[must_use]
    pub fn only(facts: impl IntoIterator<Item = Fact>) -> Self {
        Self {
            facts: facts.into_iter().collect(),
            directories: Directories::All,
            mtime_tolerance_ns: 0,
        }
    }

    /// Looks at `fact` too.
    #[must_use]
    pub fn with(mut self, fact: Fact) -> Self {
        self.facts.insert(fact);
        self
    }

    /// Does not look at `fact`.
    #[must_use]
    pub fn without(mut self, fact: Fact) -> Self {
        self.facts.remove(&fact);
        self
    }

    /// Sets which directories count.
    #[must_use]
    pub fn directories(mut self, directories: Directories) -> Self {
        self.directories = directories;
        self
    }

    /// Takes modification times for equal that are at most this far apart.
    #[must_use]
    pub fn mtime_tolerance_ns(mut self, nanoseconds: u64) -> Self {
        self.mtime_tolerance_ns = nanoseconds;
        self
    }
}

impl Snapshot {
    /// Returns one line for each difference, in order of the paths; none when the trees are equal.
    ///
    /// Only facts that both snapshots know are compared; a snapshot read from JSON knows fewer than one taken from disk.
    #[must_use]
    pub fn difference(&self, other: &Snapshot, compare: &Compare) -> Vec<String> {
        let paths: BTreeSet<&[u8]> = self
            .entries()
            .chain(other.entries())
            .map(|(path, _)| path)
            .collect();
        let mut facts = compare.facts.clone();
        facts.retain(|fact| self.known.contains(fact) && other.known.contains(fact));
        let compare = Compare {
            facts,
            ..compare.clone()
        };
        let mut lines = Vec::new();
        for path in paths {
            match (self.counted(path, &compare), other.counted(path, &compare)) {
                (Some(one), None) => lines.push(format!(
                    "`{}`: only in the first, a {}",
                    shown(path),
                    one.kind
                )),
                (None, Some(two)) => lines.push(format!(
                    "`{}`: only in the second, a {}",
                    shown(path),
                    two.kind
                )),
                (Some(one), Some(two)) => compare_facts(&compare, path, (one, two), &mut lines),
                (None, None) => {}
            }
        }
        lines
    }

    fn counted(&self, path: &[u8], compare: &Compare) -> Option<&Facts> {
        let facts = self.entries.get(path)?;
        let skipped = compare.directories == Directories::Empty
            && facts.kind == Kind::Directory
            && self.has_contents(path);
        (!skipped).then_some(facts)
    }

    pub(super) fn has_contents(&self, path: &[u8]) -> bool {
        let prefix = [path, b"/"].concat();
        self.entries
            .range(prefix.clone()..)
            .next()
            .is_some_and(|(next, _)| next.starts_with(&prefix))
    }
}

fn compare_facts(
    compare: &Compare,
    path: &[u8],
    (one, two): (&Facts, &Facts),
    lines: &mut Vec<String>,
) {
    let mut report = |fact: &str, one: String, two: String| {
        if one != two {
            lines.push(format!(
                "`{}`: {fact} is {one} in the first, {two} in the second",
                shown(path)
            ));
        }
    };
    report("kind", one.kind.to_string(), two.kind.to_string());
    if one.kind != two.kind {
        return;
    }
    for fact in &compare.facts {
        if *fact == Fact::Mode && one.kind == Kind::Symlink {
            continue;
        }
        let directory_time = one.kind == Kind::Directory;
        match fact {
            Fact::Mtime if directory_time => {}
            Fact::DirectoryMtime if !directory_time => {}
            Fact::Mtime | Fact::DirectoryMtime => {
                if one.mtime_ns.abs_diff(two.mtime_ns) > compare.mtime_tolerance_ns.into() {
                    report("mtime", shown_time(one.mtime_ns), shown_time(two.mtime_ns));
                }
            }
            fact => report(
                fact_name(*fact),
                shown_fact(*fact, one),
                shown_fact(*fact, two),
            ),
        }
    }
}

fn fact_name(fact: Fact) -> &'static str {
    match fact {
        Fact::Mode => "mode",
        Fact::Owner => "owner",
        Fact::Size => "size",
        Fact::Mtime | Fact::DirectoryMtime => "mtime",
        Fact::Content => "md5",
        Fact::Target => "target",
        Fact::Device => "device",
        Fact::Xattrs => "xattrs",
        Fact::Links => "first hard link",
        Fact::Holes => "sparseness",
    }
}

fn shown_fact(fact: Fact, facts: &Facts) -> String {
    match fact {
        Fact::Mode => format!("{:04o}", facts.mode),
        Fact::Owner => format!("{}:{}", facts.owner.0, facts.owner.1),
        Fact::Size => facts.size.to_string(),
        Fact::Mtime | Fact::DirectoryMtime => shown_time(facts.mtime_ns),
        Fact::Content => facts.md5.clone().unwrap_or_else(|| "unknown".to_owned()),
        Fact::Target => shown_path(facts.target.as_deref()),
        Fact::Device => facts.device.map_or_else(
            || "none".to_owned(),
            |(major, minor)| format!("{major}:{minor}"),
        ),
        Fact::Xattrs => {
            let pairs = facts.xattrs.iter();
            let shown: Vec<String> = pairs
                .map(|(name, value)| format!("{}={}", shown(name), value.escape_ascii()))
                .collect();
            format!("[{}]", shown.join(", "))
        }
        Fact::Links => shown_path(facts.first_link.as_deref()),
        Fact::Holes => if facts.has_holes { "sparse" } else { "dense" }.to_owned(),
    }
}

fn shown_path(path: Option<&[u8]>) -> String {
    path.map_or_else(
        || "none".to_owned(),
        |path| format!("`{}`", path.escape_ascii()),
    )
}

fn shown_time(nanoseconds: i128) -> String {
    let second = 1_000_000_000;
    format!(
        "{}.{:09}",
        nanoseconds.div_euclid(second),
        nanoseconds.rem_euclid(second)
    )
}
