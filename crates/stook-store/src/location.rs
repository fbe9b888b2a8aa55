//! What a user writes for a store.
//!
//! ```text
//!   /a/directory  ./one  file:///a/directory
//!   https://host/path  http://host/path        read only
//!   s3://bucket/prefix
//!   hpss:/a/path                               through hsi
//!   globus://ENDPOINT/a/path                   ENDPOINT a UUID or a known name
//!   ssh://user@host:port/a/path
//! ```

use std::fmt;
use std::path::{Path, PathBuf};

use stook_sys::look_at;

/// A place for volumes, as it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A directory of a web server; the whole URL, without a slash at its end.
    Http(String),
    /// A prefix in a bucket.
    S3 {
        /// The bucket.
        bucket: String,
        /// What names begin with; empty, or without a slash at either end.
        prefix: String,
    },
    /// A directory of HPSS.
    Hpss(String),
    /// A directory of a Globus endpoint.
    Globus {
        /// Its UUID, or a name that stands for one.
        endpoint: String,
        /// The directory, with a slash at its begin.
        path: String,
    },
    /// A directory of another machine.
    Ssh {
        /// The user; None: whom ssh takes.
        user: Option<String>,
        /// The machine, or a name in the configuration of ssh.
        host: String,
        /// The port; None: the one that ssh takes.
        port: Option<u16>,
        /// The directory, with a slash at its begin.
        path: String,
    },
}

/// Why a text is no location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// It is empty.
    #[error("a store cannot be empty")]
    Empty,
    /// It begins like a URL of a kind that is not known.
    #[error("stores cannot be reached by `{0}://`")]
    UnknownScheme(String),
    /// A directory of another machine, or one that is relative to somewhere.
    #[error("`{0}` is no directory of this machine: a path after `file://` begins with a slash")]
    NotLocal(String),
    /// A part is missing.
    #[error("`{url}` names no {part}")]
    Missing {
        /// What was written.
        url: String,
        /// What it lacks.
        part: &'static str,
    },
    /// The port is no number.
    #[error("`{0}` is no port")]
    Port(String),
}

impl Location {
    /// Returns the location that this text stands for; without `://` it is a directory, with `hpss:` in front a path of
    /// HPSS.
    ///
    /// # Errors
    /// If it stands for none. No place is looked at.
    pub fn parse(text: &str) -> Result<Self, LocationError> {
        if text.trim().is_empty() {
            return Err(LocationError::Empty);
        }
        if let Some(path) = text.strip_prefix("hpss:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            let path = required(text, path, "path")?;
            // All of it is the root.
            let trimmed = path.trim_end_matches('/');
            return Ok(Self::Hpss(
                if trimmed.is_empty() { "/" } else { trimmed }.to_owned(),
            ));
        }
        if let Some(rest) = text.strip_prefix("file:") {
            return parse_file(text, rest);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Self::Directory(PathBuf::from(text)));
        };
        match scheme {
            "http" | "https" => {
                required(text, rest, "host")?;
                Ok(Self::Http(text.trim_end_matches('/').to_owned()))
            }
            "s3" => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                Ok(Self::S3 {
                    bucket: required(text, bucket, "bucket")?.to_owned(),
                    prefix: prefix.trim_matches('/').to_owned(),
                })
            }
            "globus" => {
                let (endpoint, path) = host_and_path(text, rest)?;
                Ok(Self::Globus {
                    endpoint: required(text, endpoint, "endpoint")?.to_owned(),
                    path,
                })
            }
            "ssh" | "sftp" => parse_ssh(text, rest),
            _ => Err(LocationError::UnknownScheme(scheme.to_owned())),
        }
    }
}

fn parse_file(url: &str, rest: &str) -> Result<Location, LocationError> {
    let path = rest.strip_prefix("//").unwrap_or(rest);
    let path = path.strip_prefix("localhost").unwrap_or(path);
    match required(url, path, "directory")?.starts_with('/') {
        true => Ok(Location::Directory(path.into())),
        false => Err(LocationError::NotLocal(url.to_owned())),
    }
}

/// Returns a URL without a user and a password.
fn without_login(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

fn is_same_directory(one: &Path, other: &Path) -> bool {
    let identity = |path: &Path| {
        let found = look_at(path).ok()?;
        Some(found.identity())
    };
    // Without the slashes and single dots of paths.
    one.components().eq(other.components())
        || identity(one).is_some_and(|found| Some(found) == identity(other))
}

fn required<'a>(url: &str, text: &'a str, part: &'static str) -> Result<&'a str, LocationError> {
    if text.is_empty() {
        let url = url.to_owned();
        return Err(LocationError::Missing { url, part });
    }
    Ok(text)
}

fn host_and_path<'a>(url: &str, rest: &'a str) -> Result<(&'a str, String), LocationError> {
    let Some((host, path)) = rest.split_once('/') else {
        let url = url.to_owned();
        return Err(LocationError::Missing { url, part: "path" });
    };
    Ok((host, format!("/{}", path.trim_end_matches('/'))))
}

fn parse_ssh(text: &str, rest: &str) -> Result<Location, LocationError> {
    let (machine, path) = host_and_path(text, rest)?;
    let (user, machine) = match machine.rsplit_once('@') {
        Some((user, machine)) => (Some(required(text, user, "user")?.to_owned()), machine),
        None => (None, machine),
    };
    let (host, port) = match machine.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            let number = port
                .parse()
                .map_err(|_bad| LocationError::Port(port.to_owned()))?;
            (host, Some(number))
        }
        _ => (machine, None),
    };
    Ok(Location::Ssh {
        user,
        host: required(text, host, "host")?.to_owned(),
        port,
        path,
    })
}

impl Location {
    /// Returns true if both are one place, however it is written: links to a directory, slashes at the end, a login.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Directory(one), Self::Directory(other)) => is_same_directory(one, other),
            (Self::Http(one), Self::Http(other)) => without_login(one) == without_login(other),
            _ => self == other,
        }
    }

    /// Returns it without a user and a password for a web server: a text that may be shown and kept.
    #[must_use]
    pub fn without_login(self) -> Self {
        match self {
            Self::Http(url) => Self::Http(without_login(&url)),
            other => other,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => f.write_str(&stook_sys::display_path(path)),
            Self::Http(url) => f.write_str(url),
            Self::S3 { bucket, prefix } if prefix.is_empty() => write!(f, "s3://{bucket}"),
            Self::S3 { bucket, prefix } => write!(f, "s3://{bucket}/{prefix}"),
            Self::Hpss(path) => write!(f, "hpss:{path}"),
            Self::Globus { endpoint, path } => write!(f, "globus://{endpoint}{path}"),
            Self::Ssh {
                user,
                host,
                port,
                path,
            } => {
                f.write_str("ssh://")?;
                if let Some(user) = user {
                    write!(f, "{user}@")?;
                }
                f.write_str(host)?;
                if let Some(port) = port {
                    write!(f, ":{port}")?;
                }
                f.write_str(path)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_read_and_written_alike() {
        for text in [
            "/a/directory",
            "./one",
            "https://host/path",
            "s3://bucket",
            "s3://bucket/a/prefix",
            "hpss:/home/a/run",
            "globus://nersc/~/run",
            "ssh://host/a/path",
            "ssh://me@host:2222/a/path",
            "ssh://[::1]/a/path",
        ] {
            assert_eq!(Location::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn one_place_may_be_written_in_several_ways() {
        let is_same = |one: &str, other: &str| {
            let parse = |text| Location::parse(text).unwrap();
            parse(one).is_same(&parse(other))
        };
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real");
        std::fs::create_dir(&real).unwrap();
        std::os::unix::fs::symlink("real", folder.path().join("link")).unwrap();
        let path = |name: &str| format!("{}/{name}", folder.path().to_str().unwrap());
        for other in ["real/", "./real", "link", "real/../real"] {
            assert!(is_same(&path("real"), &path(other)), "{other}");
        }
        assert!(is_same(&path("real"), &format!("file://{}/", path("real"))));
        assert!(!is_same(&path("real"), &path("other")));
        for (one, other) in [
            ("https://me:secret@host/a", "https://host/a/"),
            ("sftp://host/a/", "ssh://host/a"),
            ("hpss:/a/b/", "hpss:///a/b"),
            ("s3://bucket/a/", "s3://bucket/a"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        assert!(!is_same("https://host/a", "http://host/a"));
        let shown = Location::parse("https://me:secret@host/a@b").unwrap();
        assert_eq!(shown.without_login().to_string(), "https://host/a@b");
    }

    #[test]
    fn what_a_location_needs_is_said() {
        for (text, expected) in [
            ("", "a store cannot be empty"),
            ("ftp://host/path", "stores cannot be reached by `ftp://`"),
            ("s3:///prefix", "`s3:///prefix` names no bucket"),
            ("ssh://host", "`ssh://host` names no path"),
            ("ssh://@host/path", "`ssh://@host/path` names no user"),
            ("ssh://host:no/path", "`no` is no port"),
            ("globus:///path", "`globus:///path` names no endpoint"),
            ("hpss:", "`hpss:` names no path"),
            ("file://", "`file://` names no directory"),
            ("  ", "a store cannot be empty"),
            (
                "file://host/x",
                "`file://host/x` is no directory of this machine: a path after `file://` begins with a slash",
            ),
            (
                "file:x",
                "`file:x` is no directory of this machine: a path after `file://` begins with a slash",
            ),
        ] {
            assert_eq!(Location::parse(text).unwrap_err().to_string(), expected);
        }
    }
}
