//! Options of a mount, wherever they were typed: by themselves, or with `-o`.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::args::{AsOfArgs, MountArgs, SourceArgs};
use crate::exit::CliError;
use crate::stores::is_url;

/// Options of `mount(8)` and fstab that ask for what is so in any case, or are for other programs.
const KNOWN: [&str; 26] = [
    "ro",
    // What mount(8) makes of `defaults`; a mount is read-only all the same.
    "rw",
    "nosuid",
    "nodev",
    "default_permissions",
    "defaults",
    "exec",
    "async",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "nofail",
    "_netdev",
    "noatime",
    "relatime",
    "norelatime",
    "nodiratime",
    "strictatime",
    "lazytime",
    "nolazytime",
    "iversion",
    "noiversion",
];

/// Options that cannot be had.
const REFUSED: [(&str, &str); 3] = [
    ("suid", "set-id bits are never heeded in a mount"),
    ("dev", "devices are never heeded in a mount"),
    ("remount", "unmount it, then mount it again"),
];

/// What was typed, taken together.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch that the user types"
)]
pub(crate) struct Typed {
    archive: PathBuf,
    pub(crate) mountpoint: PathBuf,
    pub(crate) as_of: AsOfArgs,
    pub(crate) foreground: bool,
    pub(crate) allow_other: bool,
    pub(crate) no_exec: bool,
    pub(crate) verify: bool,
    pub(crate) all_versions: bool,
    pub(crate) native: bool,
    pub(crate) image: Option<PathBuf>,
    pub(crate) log: Option<PathBuf>,
    pub(crate) source: SourceArgs,
    pub(crate) prefetch: Vec<String>,
    decode_threads: Option<u16>,
    /// `mount -f`: everything but the mounting.
    pub(crate) is_fake: bool,
}

impl Typed {
    pub(crate) fn of(args: &MountArgs) -> Result<Self, CliError> {
        let mut typed = Self {
            archive: args.archive.clone(),
            mountpoint: args.mountpoint.clone(),
            as_of: AsOfArgs {
                as_of: args.as_of.as_of.clone(),
            },
            foreground: args.foreground,
            allow_other: args.allow_other,
            no_exec: false,
            verify: args.verify,
            all_versions: args.all_versions,
            native: args.native,
            image: args.image.clone(),
            log: args.log.clone(),
            source: args.source.clone(),
            prefetch: args.prefetch.clone(),
            decode_threads: args.decode_threads,
            is_fake: false,
        };
        for option in args.options.iter().flat_map(|options| options.split(',')) {
            typed.add(option)?;
        }
        Ok(typed)
    }

    fn add(&mut self, option: &str) -> Result<(), CliError> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        match (name, value) {
            ("allow_other", None) => self.allow_other = true,
            ("verify", None) => self.verify = true,
            ("all_versions", None) => self.all_versions = true,
            ("native", None) => self.native = true,
            ("noexec", None) => self.no_exec = true,
            ("foreground", None) => self.foreground = true,
            ("fake", None) => self.is_fake = true,
            ("as_of", Some(value)) => self.as_of.as_of = Some(value.to_owned()),
            ("log", Some(value)) => self.log = Some(value.into()),
            ("store", Some(value)) => self.source.place.store = Some(value.to_owned()),
            ("mirror", Some(value)) => self.source.mirrors.push(value.to_owned()),
            ("prefetch", Some(value)) => self.prefetch.push(value.to_owned()),
            ("cache", Some(value)) => self.source.cache.cache = Some(value.into()),
            ("cache_size", Some(value)) => self.source.cache.cache_size = Some(value.to_owned()),
            ("decode_threads", Some(value)) => {
                let threads = value.parse().ok().filter(|threads| *threads > 0_u16);
                self.decode_threads = Some(threads.ok_or_else(|| refusal(option))?);
            }
            ("offline", None) => self.source.cache.offline = true,
            ("", None) | ("comment", Some(_)) => {}
            (name, None) if KNOWN.contains(&name) => {}
            (name, _) if name.starts_with("x-") => {}
            _ => return Err(refusal(option)),
        }
        Ok(())
    }

    /// Returns the archive: a URL as it was typed, or a whole path, since the working directory changes.
    pub(crate) fn archive(&self) -> Result<PathBuf, CliError> {
        if self.archive.to_str().is_some_and(is_url) {
            return Ok(self.archive.clone());
        }
        Ok(stook_sys::absolute(&self.archive)?)
    }

    /// Returns how many frames of compressed volumes are decoded at a time.
    pub(crate) fn decode_threads(&self) -> NonZeroUsize {
        let typed = self.decode_threads.map(usize::from);
        let usual = stook_sys::available_cpus().max(2);
        NonZeroUsize::new(typed.unwrap_or(usual)).unwrap_or(NonZeroUsize::MIN)
    }

    /// Returns the file for the log, as a whole path.
    pub(crate) fn log_path(&self) -> Option<&Path> {
        self.log.as_deref()
    }
}

fn refusal(option: &str) -> CliError {
    let refused = REFUSED.iter().find(|(name, _)| *name == option);
    let why = refused.map_or("there is no such mount option", |(_, why)| *why);
    CliError::Option {
        option: "-o",
        value: option.to_owned(),
        why: why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(options: &str) -> Result<Typed, CliError> {
        Typed::of(&MountArgs {
            archive: "archive".into(),
            mountpoint: "point".into(),
            as_of: AsOfArgs { as_of: None },
            foreground: false,
            allow_other: false,
            verify: false,
            all_versions: false,
            native: false,
            image: None,
            log: None,
            source: SourceArgs::default(),
            prefetch: Vec::new(),
            decode_threads: None,
            options: vec![options.to_owned()],
        })
    }

    #[test]
    fn options_of_fstab_are_taken() {
        let typed = typed("ro,allow_other,_netdev,as_of=3,x-systemd.automount,noexec,").unwrap();
        assert!(typed.allow_other && typed.no_exec && !typed.verify && !typed.foreground);
        assert_eq!(typed.as_of.as_of.as_deref(), Some("3"));
        let typed = super::tests::typed(
            "cache=/var/cache/stook,cache_size=1GiB,offline,mirror=http://a/b,mirror=http://c,prefetch=*.nc",
        )
        .unwrap();
        assert_eq!(typed.source.mirrors, ["http://a/b", "http://c"]);
        assert_eq!(typed.prefetch, ["*.nc"]);
        let cache = typed.source.cache;
        assert_eq!(cache.cache, Some("/var/cache/stook".into()));
        assert!(cache.offline && cache.cache_size.as_deref() == Some("1GiB"));
        let typed = super::tests::typed("decode_threads=3").unwrap();
        assert_eq!(typed.decode_threads().get(), 3);
    }

    #[test]
    fn options_that_cannot_be_had_are_refused() {
        for option in ["suid", "dev", "nonsense", "verify=1", "decode_threads=0"] {
            assert!(typed(option).is_err(), "{option}");
        }
    }
}
