//! OpenSSH's server, for one key, on a port of this machine.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Server, find_program, free_port};
use crate::TempDir;

/// Where sshd wants an empty directory of root's.
const SEPARATION: &str = "/run/sshd";

/// A server to which a key of its own opens the door.
#[derive(Debug)]
pub struct Sshd {
    server: Server,
    folder: TempDir,
}

impl Sshd {
    /// Starts one; None if it is not installed, or cannot run here as this user.
    ///
    /// # Errors
    /// When it does not run.
    pub fn start() -> io::Result<Option<Self>> {
        let sftp = Path::new("/usr/lib/openssh/sftp-server");
        let (Some(program), true) = (find_program("sshd"), sftp.is_file()) else {
            return Ok(None);
        };
        if !Path::new(SEPARATION).is_dir() && std::fs::create_dir(SEPARATION).is_err() {
            return Ok(None);
        }
        let folder = TempDir::new()?;
        for key in ["host", "key"] {
            make_key(&folder.join(key))?;
        }
        std::fs::copy(folder.join("key.pub"), folder.join("authorized"))?;
        let port = free_port()?;
        let known = std::fs::read_to_string(folder.join("host.pub"))?;
        let known = format!("[127.0.0.1]:{port} {known}");
        std::fs::write(folder.join("known"), known)?;
        let option = |name: &str, file: &str| {
            let mut option = OsString::from(format!("-o{name}="));
            option.push(folder.join(file));
            option
        };
        let mut command = Command::new(program);
        command.args(["-D", "-e", "-f", "/dev/null", "-p", &port.to_string()]);
        command.args([
            "-oListenAddress=127.0.0.1",
            "-oStrictModes=no",
            "-oUsePAM=no",
        ]);
        command.args(["-oPermitRootLogin=prohibit-password", "-oMaxStartups=100"]);
        command.arg(format!("-oSubsystem=sftp {}", sftp.display()));
        command.arg(option("HostKey", "host"));
        command.arg(option("AuthorizedKeysFile", "authorized"));
        command.arg(option("PidFile", "pid"));
        let server = Server::start(&mut command, port, &folder.join("output"))?;
        Ok(Some(Self { server, folder }))
    }

    /// Ends it at once; connections that are open stay.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Returns its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.port
    }

    /// Returns what `ssh` must be told to get in.
    #[must_use]
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments = vec!["-F".into(), "/dev/null".into(), "-i".into()];
        arguments.push(self.folder.join("key").into());
        let mut known = OsString::from("-oUserKnownHostsFile=");
        known.push(self.folder.join("known"));
        arguments.push(known);
        arguments.push("-oIdentitiesOnly=yes".into());
        arguments.push("-oStrictHostKeyChecking=yes".into());
        arguments
    }
}

fn make_key(path: &Path) -> io::Result<()> {
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path);
    let status = command.stdin(Stdio::null()).status()?;
    if status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("ssh-keygen: {status}")))
}
