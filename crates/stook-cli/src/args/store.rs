//! Stores: what is typed for the place of the volumes, and the commands that move them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

// Where volumes are sent, for commands that write an archive.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) place: StoreArgs,
    /// Transfers at a time (default: 2)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) transfers: Option<u16>,
    /// Most bytes of finished volumes that wait for their transfer; at least one volume (default: no limit)
    #[arg(long, value_name = "SIZE")]
    pub(crate) spool_size: Option<String>,
    /// Keep local volumes after the store has confirmed them
    #[arg(long)]
    pub(crate) keep_volumes: bool,
    /// The least proof that a volume arrived (default: what the store needs before a local volume is deleted)
    #[arg(long, value_name = "PROOF")]
    pub(crate) proof: Option<ProofArg>,
    /// Move an archive that has another store to this one; all volumes must be here
    #[arg(long)]
    pub(crate) change_store: bool,
}

// Where volumes are that are not in the archive's folder, for commands that read.
#[derive(Debug, Default, Clone, ClapArgs)]
pub(crate) struct SourceArgs {
    #[command(flatten)]
    pub(crate) place: StoreArgs,
    /// Another store with the same archive, asked when the first one fails; may be repeated
    #[arg(long = "mirror", value_name = "URL")]
    pub(crate) mirrors: Vec<String>,
    #[command(flatten)]
    pub(crate) cache: StoreCacheArgs,
}

// The same, for commands that read whole volumes.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct FetchArgs {
    #[command(flatten)]
    pub(crate) source: SourceArgs,
    /// Most bytes of volumes that are here because they were fetched, from stores that cannot read a part of a file (HPSS,
    /// Globus); at least one volume (default: no limit)
    #[arg(long, value_name = "SIZE")]
    pub(crate) spool_size: Option<String>,
}

// The place itself.
#[derive(Debug, Default, Clone, ClapArgs)]
pub(crate) struct StoreArgs {
    /// Where the volumes lie: a directory, or a URL with s3, ssh, http, https, hpss or globus; `none` for nowhere
    /// (default: the store of the archive)
    ///
    /// s3://BUCKET/PREFIX, ssh://USER@HOST:PORT/PATH, https://HOST/PATH (read only), hpss:/PATH, globus://ENDPOINT/PATH.
    /// docs/stores.md says what each needs and proves.
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ProofArg {
    /// The store has as many bytes
    Size,
    /// A hash of the bytes was compared while they were sent
    Hashed,
    /// The bytes were read back and hashed
    ReadBack,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PushArgs {
    /// The archive: a directory with index.db and volumes
    pub(crate) archive: PathBuf,
    #[command(flatten)]
    pub(crate) send: SendArgs,
}

#[derive(Debug, ClapArgs)]
#[command(after_long_help = super::PATTERNS)]
pub(crate) struct PullArgs {
    /// The directory for index.db and volumes; created if missing
    pub(crate) archive: PathBuf,
    /// Fetch only the volumes with members that match, or in directories that match
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<OsString>,
    /// Fetch only index.db
    #[arg(long, conflicts_with = "patterns")]
    pub(crate) index: bool,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StatusArgs {
    /// The archive: a directory with index.db and volumes
    pub(crate) archive: PathBuf,
    /// Do not ask the store: show what is on record
    #[arg(long, conflicts_with = "store")]
    pub(crate) offline: bool,
    #[command(flatten)]
    pub(crate) place: StoreArgs,
}

// What is kept of archives in stores, for commands that read them.
#[derive(Debug, Default, Clone, ClapArgs)]
pub(crate) struct StoreCacheArgs {
    /// Keep what is read from a store in this directory, for the next command and other processes
    ///
    /// It is created if missing, and must be yours alone (mode 0700).
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    /// What the directory of --cache may take on the disk (default: 10GiB)
    #[arg(long, value_name = "SIZE", requires = "cache")]
    pub(crate) cache_size: Option<String>,
    /// Ask no store: read only what --cache has, and the last index that was fetched
    #[arg(long)]
    pub(crate) offline: bool,
}
