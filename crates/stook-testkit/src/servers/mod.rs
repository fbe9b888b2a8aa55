//! Real servers for tests, on ports of this machine: a web server, an object store, ssh.
//!
//! ```text
//!   test ── pipe ──> sh ── starts ──> server, in a process group of its own
//!                     └── reads the pipe to its end, then kills the group
//! ```
//! The pipe closes when the server is dropped, and when the test dies, however it does: no server is left.

mod canned;
mod moto;
mod nginx;
mod slow_link;
mod sshd;
mod versitygw;

pub use canned::{Canned, Request};
pub use moto::{Moto, start_moto};
pub use nginx::Nginx;
pub use slow_link::{LinkCounts, LinkOptions, SlowLink};
pub use sshd::Sshd;
pub use versitygw::Versitygw;

use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take until it takes connections.
const START_TIME: Duration = Duration::from_secs(60);

/// Starts a command, and ends it with its process group at the end of the input.
const KEEPER: &str = r#"setsid "$@" </dev/null & read -r _; kill -KILL "-$!" || kill -KILL "$!""#;

/// A running server; dropping it ends it.
#[derive(Debug)]
struct Server {
    keeper: Child,
    port: u16,
}

impl Server {
    /// Starts a command that listens on a port, and waits until it does. What it writes goes to `log`.
    fn start(command: &mut Command, port: u16, log: &Path) -> io::Result<Self> {
        let output = std::fs::File::create(log)?;
        let program = command.get_program().to_owned();
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER, "sh"]).arg(&program);
        keeper.args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => keeper.env(name, value),
                None => keeper.env_remove(name),
            };
        }
        keeper.stdin(Stdio::piped());
        keeper.stdout(output.try_clone()?).stderr(output);
        let server = Self {
            keeper: keeper.spawn()?,
            port,
        };
        let end = Instant::now() + START_TIME;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            if Instant::now() > end {
                let said = std::fs::read_to_string(log).unwrap_or_default();
                let program = program.display();
                return Err(io::Error::other(format!("{program}: {said}")));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Ends it at once, as a crash would.
    fn kill(&mut self) {
        drop(self.keeper.stdin.take());
        // It was reaped already if that fails.
        let _ = self.keeper.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns a port that nobody listened on a moment ago.
///
/// # Errors
/// When there is none.
pub fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Returns where a program lies: along `PATH`, or where programs of administrators are.
#[must_use]
pub fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let folders = folders.chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    let mut programs = folders.map(|folder| folder.join(name));
    programs.find(|program| program.is_file())
}

/// Sends one request of HTTP/1.0 and returns the status and the body; for what no store is asked in a test.
///
/// # Errors
/// When the server does not answer.
pub fn http_request(
    port: u16,
    method: &str,
    target: &str,
    authorization: &str,
    body: &[u8],
) -> io::Result<(u16, Vec<u8>)> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect(address)?;
    let len = body.len();
    let head = format!(
        "{method} {target} HTTP/1.0\r\nHost: {address}\r\nAuthorization: {authorization}\r\n\
         Content-Length: {len}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let status = answer
        .get(9..12)
        .and_then(|code| std::str::from_utf8(code).ok());
    let status = status.and_then(|code| code.parse().ok());
    let begin = answer.windows(4).position(|four| four == b"\r\n\r\n");
    let (Some(status), Some(begin)) = (status, begin) else {
        return Err(io::Error::other("the answer is no HTTP"));
    };
    answer.drain(..begin + 4);
    Ok((status, answer))
}

/// Returns a name as it stands in the path of a URL.
#[must_use]
pub fn percent_encoded(name: impl AsRef<OsStr>) -> String {
    let bytes = name.as_ref().as_encoded_bytes();
    let encode = |&byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    bytes.iter().map(encode).collect()
}
