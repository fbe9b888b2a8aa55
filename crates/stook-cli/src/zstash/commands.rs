//! zstash's command line as tables: each command with its own options, in the order in which its help lists them.

use super::argparse::{Argument, Group, Parser, Takes};

/// zstash's version, whose command line this is.
pub(crate) const VERSION: &str = "v1.6.0";

const fn option(
    flags: &'static [&'static str],
    name: &'static str,
    takes: Takes,
    help: &'static str,
) -> Argument {
    Argument {
        flags,
        name,
        takes,
        group: Group::Optional,
        is_required: false,
        help,
    }
}

const fn positional(name: &'static str, help: &'static str) -> Argument {
    Argument {
        group: Group::Positional,
        is_required: true,
        ..option(&[], name, Takes::Text, help)
    }
}

/// Under the heading of options that Python makes by itself.
const fn plain(argument: Argument) -> Argument {
    Argument {
        group: Group::Options,
        ..argument
    }
}

const HELP: Argument = plain(option(
    &["-h", "--help"],
    "help",
    Takes::Help,
    "show this help message and exit",
));
const HPSS: Argument = option(
    &["--hpss"],
    "hpss",
    Takes::Text,
    "where the archive is stored: a path of HPSS; globus://ENDPOINT/PATH, where ENDPOINT is a UUID, alcf or nersc; or none to keep it on this machine only",
);
const REQUIRED_HPSS: Argument = Argument {
    group: Group::Required,
    is_required: true,
    ..HPSS
};
const INCLUDE: Argument = option(
    &["--include"],
    "include",
    Takes::Text,
    "patterns of the files to archive, separated by commas",
);
const EXCLUDE: Argument = option(
    &["--exclude"],
    "exclude",
    Takes::Text,
    "patterns of the files to leave out, separated by commas",
);
const MAXSIZE: Argument = option(
    &["--maxsize"],
    "maxsize",
    Takes::Float(256.0),
    "largest size of a tar file, in GiB (default 256)",
);
const KEEP: Argument = option(
    &["--keep"],
    "keep",
    Takes::Nothing,
    "keep the tar files in the cache once they are stored; with --hpss=none they always are",
);
const CACHE: Argument = option(
    &["--cache"],
    "cache",
    Takes::Text,
    "the folder of the archive on this machine (default zstash)",
);
const NON_BLOCKING: Argument = option(
    &["--non-blocking"],
    "non_blocking",
    Takes::Nothing,
    "do not wait for each Globus transfer to complete",
);
const VERBOSE: Argument = option(
    &["-v", "--verbose"],
    "verbose",
    Takes::Nothing,
    "print more of what is done",
);
const FOLLOW: Argument = option(
    &["--follow-symlinks"],
    "follow_symlinks",
    Takes::Nothing,
    "archive what symbolic links lead to; a link that leads nowhere ends the command",
);
const ERROR_ON_DUPLICATE: Argument = option(
    &["--error-on-duplicate-tar"],
    "error_on_duplicate_tar",
    Takes::Nothing,
    "end with an error if the index has a tar file twice",
);
const OVERWRITE_DUPLICATES: Argument = option(
    &["--overwrite-duplicate-tars"],
    "overwrite_duplicate_tars",
    Takes::Nothing,
    "replace what the index says of a tar file that it has already",
);
const FILES: Argument = Argument {
    is_required: false,
    takes: Takes::Texts,
    ..positional("files", "")
};

pub(crate) static TOP: Parser = Parser {
    usage: "For v1.6.0, zstash <command> [<args>]

Available zstash commands:
  version    print the version of zstash
  create     create new archive
  update     update existing archive
  extract    extract files from archive
  chgrp      change the group of an archive
  check      check the integrity of the files in the archive
  ls         list the files in an archive

For help with a specific command
  zstash command --help
",
    description: "",
    arguments: &[
        HELP,
        positional("command", "command to run (create, update, extract, ...)"),
    ],
};

pub(crate) static CREATE: Parser = Parser {
    usage: "zstash create [<args>] path",
    description: "Create a new zstash archive",
    arguments: &[
        HELP,
        positional("path", "the folder to archive"),
        REQUIRED_HPSS,
        INCLUDE,
        EXCLUDE,
        MAXSIZE,
        KEEP,
        CACHE,
        NON_BLOCKING,
        VERBOSE,
        option(
            &["--no_tars_md5"],
            "no_tars_md5",
            Takes::Nothing,
            "do not record the tar files, nor take their MD5; for tests",
        ),
        FOLLOW,
        ERROR_ON_DUPLICATE,
        OVERWRITE_DUPLICATES,
        option(
            &["--for-developers-force-database-corruption"],
            "for_developers_force_database_corruption",
            Takes::Text,
            "record the tar files wrongly, in one of several ways; for tests",
        ),
    ],
};

pub(crate) static UPDATE: Parser = Parser {
    usage: "zstash update [<args>]",
    description: "Update an existing zstash archive",
    arguments: &[
        HELP,
        HPSS,
        INCLUDE,
        EXCLUDE,
        option(
            &["--dry-run"],
            "dry_run",
            Takes::Nothing,
            "only list the files that would be archived",
        ),
        MAXSIZE,
        KEEP,
        CACHE,
        NON_BLOCKING,
        ERROR_ON_DUPLICATE,
        OVERWRITE_DUPLICATES,
        VERBOSE,
        FOLLOW,
    ],
};

/// Of `check`, too, as with zstash.
pub(crate) static EXTRACT: Parser = Parser {
    usage: "zstash extract [<args>] [files]",
    description: "Extract files from existing archive",
    arguments: &[
        HELP,
        HPSS,
        option(
            &["--workers"],
            "workers",
            Takes::Integer(1),
            "largest number of workers",
        ),
        KEEP,
        CACHE,
        option(
            &["--retries"],
            "retries",
            Takes::Integer(1),
            "how often a transfer is tried again",
        ),
        option(
            &["--tars"],
            "tars",
            Takes::Text,
            "only these tar files: numbers and ranges, separated by commas",
        ),
        VERBOSE,
        ERROR_ON_DUPLICATE,
        FILES,
    ],
};

pub(crate) static LS: Parser = Parser {
    usage: "zstash ls [<args>] [files]",
    description: "List the files from an existing archive, or those of them that match one of the patterns",
    arguments: &[
        HELP,
        HPSS,
        option(
            &["-l"],
            "long",
            Takes::Nothing,
            "show all that the index has about each file",
        ),
        CACHE,
        option(
            &["--tars"],
            "tars",
            Takes::Nothing,
            "list the tar files, too",
        ),
        VERBOSE,
        FILES,
    ],
};

pub(crate) static CHGRP: Parser = Parser {
    usage: "zstash chgrp [<args>] group hpss_archive",
    description: "Change the group of an HPSS repository.",
    arguments: &[
        HELP,
        positional("group", "the new group"),
        positional("hpss", "the path of HPSS"),
        plain(option(
            &["-R"],
            "R",
            Takes::Nothing,
            "also all that is below it",
        )),
        plain(VERBOSE),
    ],
};
