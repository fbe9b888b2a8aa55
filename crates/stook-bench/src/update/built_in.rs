//! The tools that are known by their names. How places such as `{source}` are filled is in `tool`.

/// A tool that is known by its name.
pub(super) struct BuiltIn {
    pub(super) name: &'static str,
    /// Prints its version.
    pub(super) version: &'static str,
    /// Create, update, check, extract and list.
    pub(super) lines: [&'static str; 5],
}

pub(super) const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        name: "stook",
        version: "{stook} --version",
        lines: [
            "{stook} create --quiet {source} {archive}",
            "{stook} update --quiet --deletions record {source} {archive}",
            "{stook} check --quiet {archive}",
            "{stook} extract --quiet {archive} --into {into} --jobs {workers}",
            "{stook} list --null {archive}",
        ],
    },
    // Incremental archives, as the manual of GNU tar has them for backups: what has changed is told by times and inode
    // numbers that tar keeps beside. Its `--update` would read all headers of the archive first, and would pass over files
    // that have become older.
    BuiltIn {
        name: "tar",
        version: "tar --version",
        lines: [
            "tar -cf {archive}/0.tar --listed-incremental={archive}/state -C {source} .",
            "tar -cf {archive}/1.tar --listed-incremental={archive}/state -C {source} .",
            "tar -xOf {archive}/0.tar && tar -xOf {archive}/1.tar",
            "tar -xf {archive}/0.tar -C {into} && tar -xf {archive}/1.tar -C {into}",
            "tar -tf {archive}/0.tar --quoting-style=literal && tar -tf {archive}/1.tar --quoting-style=literal",
        ],
    },
    BuiltIn {
        name: "zstash",
        version: "zstash version",
        lines: [
            "zstash create --hpss=none --cache={archive} {source}",
            "cd {source} && zstash update --hpss=none --cache={archive}",
            "cd {archive} && zstash check --hpss=none --cache={archive}",
            "cd {into} && zstash extract --hpss=none --cache={archive} --workers={workers}",
            "cd {archive} && zstash ls --hpss=none --cache={archive}",
        ],
    },
];
