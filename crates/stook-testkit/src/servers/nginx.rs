//! nginx, which serves a folder.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Server, find_program, free_port};
use crate::TempDir;

/// A web server; the folder that it serves goes with it.
#[derive(Debug)]
pub struct Nginx {
    server: Server,
    folder: TempDir,
}

impl Nginx {
    /// Starts one; None if nginx is not installed. `extra` goes into the configuration of the server.
    ///
    /// # Errors
    /// When it does not run.
    pub fn start(extra: &str) -> io::Result<Option<Self>> {
        let Some(program) = find_program("nginx") else {
            return Ok(None);
        };
        let folder = TempDir::new()?;
        std::fs::create_dir(folder.join("root"))?;
        let port = free_port()?;
        let server = Self::start_in(&program, folder.path(), port, extra)?;
        Ok(Some(Self { server, folder }))
    }

    fn start_in(program: &Path, folder: &Path, port: u16, extra: &str) -> io::Result<Server> {
        let path = folder.display();
        let configuration = format!(
            "daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;\n\
             events {{ worker_connections 64; }}\n\
             http {{\n\
             log_format bytes '$request_method $status $body_bytes_sent $uri';\n\
             access_log {path}/access.log bytes;\n\
             client_body_temp_path {path}/body; proxy_temp_path {path}/proxy;\n\
             fastcgi_temp_path {path}/fastcgi; uwsgi_temp_path {path}/uwsgi; scgi_temp_path {path}/scgi;\n\
             server {{ listen 127.0.0.1:{port}; root {path}/root; {extra} }}\n\
             }}\n"
        );
        let file = folder.join("nginx.conf");
        std::fs::write(&file, configuration)?;
        let mut command = Command::new(program);
        command.arg("-p").arg(folder).arg("-c").arg(&file);
        Server::start(&mut command, port, &folder.join("output"))
    }

    /// Ends it, and starts it again on the same port.
    ///
    /// # Errors
    /// When it does not run again.
    pub fn restart(&mut self) -> io::Result<()> {
        self.server.kill();
        let program = find_program("nginx").ok_or(io::ErrorKind::NotFound)?;
        self.server = Self::start_in(&program, self.folder.path(), self.server.port, "")?;
        Ok(())
    }

    /// Ends it at once.
    pub fn kill(&mut self) {
        self.server.kill();
    }

    /// Returns the folder that it serves.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.folder.join("root")
    }

    /// Returns its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.server.port
    }

    /// Returns its URL, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.server.port)
    }

    /// Returns the requests so far, each as method, status, bytes of the body that were sent, and path.
    ///
    /// # Errors
    /// When its log cannot be read.
    pub fn requests(&self) -> io::Result<Vec<(String, u16, u64, String)>> {
        let log = std::fs::read_to_string(self.folder.join("access.log"))?;
        let requests = log.lines().map(|line| {
            let mut words = line.splitn(4, ' ');
            let mut word = || words.next().unwrap_or_default().to_owned();
            let (method, status, bytes) = (word(), word().parse(), word().parse());
            (method, status.unwrap_or(0), bytes.unwrap_or(0), word())
        });
        Ok(requests.collect())
    }
}
