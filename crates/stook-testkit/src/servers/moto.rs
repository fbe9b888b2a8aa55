//! moto, an object store in Python: it speaks S3, keeps objects in memory, and checks no signatures unless asked to.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Server, find_program, free_port, http_request, percent_encoded};
use crate::TempDir;

/// Objects that somebody has put are nobody else's, whatever the signature.
const SIGNATURE: &str = "AWS4-HMAC-SHA256 Credential=somebody/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0";

/// An object store.
#[derive(Debug)]
pub struct Moto {
    server: Server,
    buckets: AtomicU64,
    _folder: TempDir,
}

impl Moto {
    /// Starts one of its own; None if moto is not installed. `checks_login`: nobody is known, and everybody refused.
    ///
    /// # Errors
    /// When it does not run.
    pub fn start(checks_login: bool) -> io::Result<Option<Self>> {
        let Some(program) = find_moto() else {
            return Ok(None);
        };
        let folder = TempDir::new()?;
        let port = free_port()?;
        let mut command = Command::new(program);
        command.args(["-H", "127.0.0.1", "-p", &port.to_string()]);
        if checks_login {
            command.env("INITIAL_NO_AUTH_ACTION_COUNT", "0");
        }
        let server = Server::start(&mut command, port, &folder.join("output"))?;
        Ok(Some(Self {
            server,
            buckets: AtomicU64::new(0),
            _folder: folder,
        }))
    }

    /// Makes an empty bucket, and returns its name.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn new_bucket(&self) -> io::Result<String> {
        let number = self.buckets.fetch_add(1, Ordering::Relaxed);
        let bucket = format!("bucket-{number}");
        self.send("PUT", &format!("/{bucket}"), b"")?;
        Ok(bucket)
    }

    /// Gives an object other bytes; `key` begins with the bucket.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn put(&self, key: &str, bytes: &[u8]) -> io::Result<()> {
        let target = format!("/{}", percent_encoded(key));
        self.send("PUT", &target, bytes).map(drop)
    }

    /// Returns what the server says to a request that needs no signature.
    ///
    /// # Errors
    /// When it refuses.
    pub fn send(&self, method: &str, target: &str, body: &[u8]) -> io::Result<Vec<u8>> {
        let (status, answer) = http_request(self.server.port, method, target, SIGNATURE, body)?;
        if status >= 300 {
            return Err(io::Error::other(format!("{method} {target}: {status}")));
        }
        Ok(answer)
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Returns names and values as they would stand in the environment of somebody who uses it.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.server.port);
        [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", "somebody"),
            ("AWS_SECRET_ACCESS_KEY", "a secret"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }
}

/// Returns the server that all tests of a program share; None if moto is not installed.
///
/// # Panics
/// When it does not run.
pub fn start_moto() -> Option<&'static Moto> {
    static SHARED: OnceLock<Option<Moto>> = OnceLock::new();
    let shared = SHARED.get_or_init(|| match Moto::start(false) {
        Ok(moto) => moto,
        Err(error) => panic!("moto does not run: {error}"),
    });
    shared.as_ref()
}

/// Where `.ci/test-tools --install` puts it, or along `PATH`.
fn find_moto() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")))?;
    let own = cache.join("stook/test-tools/bin/moto_server");
    if own.is_file() {
        return Some(own);
    }
    find_program("moto_server")
}
