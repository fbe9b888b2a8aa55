//! versitygw, an object store in Go: it checks signatures and keeps conditions. `make test-s3` builds it.

use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Server, free_port};
use crate::TempDir;

const ACCESS_KEY: &str = "somebody";
const SECRET_KEY: &str = "a secret";

/// An object store; what it keeps goes with it.
#[derive(Debug)]
pub struct Versitygw {
    server: Server,
    folder: TempDir,
    buckets: AtomicU64,
}

impl Versitygw {
    /// Starts the one that the variable `STOOK_VERSITYGW` names; None if it names none.
    ///
    /// # Errors
    /// When it does not run.
    pub fn start() -> io::Result<Option<Self>> {
        let Some(program) = std::env::var_os("STOOK_VERSITYGW").map(PathBuf::from) else {
            return Ok(None);
        };
        let folder = TempDir::new()?;
        let objects = folder.join("objects");
        std::fs::create_dir(&objects)?;
        let port = free_port()?;
        let mut command = Command::new(program);
        command.env("ROOT_ACCESS_KEY", ACCESS_KEY);
        command.env("ROOT_SECRET_KEY", SECRET_KEY);
        command.args(["--port", &format!("127.0.0.1:{port}"), "posix"]);
        command.arg(&objects);
        let server = Server::start(&mut command, port, &folder.join("output"))?;
        Ok(Some(Self {
            server,
            folder,
            buckets: AtomicU64::new(0),
        }))
    }

    /// Makes an empty bucket, and returns its name.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new_bucket(&self) -> io::Result<String> {
        let number = self.buckets.fetch_add(1, Ordering::Relaxed);
        let bucket = format!("bucket-{number}");
        std::fs::create_dir(self.folder.join("objects").join(&bucket))?;
        Ok(bucket)
    }

    /// Returns names and values as they would stand in the environment of somebody who uses it.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.server.port);
        [
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec()
    }
}
