//! A server that answers what a test says, for what no real server does when it is asked to: lies, silence, half answers.

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// What was asked: method, target, and lines of the header in small letters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// `GET`, say.
    pub method: String,
    /// The path.
    pub target: String,
    /// `range: bytes=0-9`, say.
    pub headers: Vec<String>,
}

impl Request {
    /// Returns the value of a header, whose name is in small letters.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// A server that a function answers for; each connection has a thread.
#[derive(Debug)]
pub struct Canned {
    port: u16,
    is_over: Arc<AtomicBool>,
}

impl Canned {
    /// Starts one. The function writes what it likes; the connection closes when it returns.
    ///
    /// # Panics
    /// When no port is free.
    pub fn start(answer: impl Fn(&Request, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it listens");
        let is_over = Arc::new(AtomicBool::new(false));
        let (answer, ended) = (Arc::new(answer), Arc::clone(&is_over));
        thread::spawn(move || {
            for stream in listener.incoming() {
                if ended.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { return };
                let answer = Arc::clone(&answer);
                thread::spawn(move || serve(stream, &*answer));
            }
        });
        let port = address.port();
        Self { port, is_over }
    }

    /// Returns its port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns its URL, without a slash at the end.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for Canned {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // The thread that waits for connections sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
    }
}

fn serve(stream: TcpStream, answer: &(impl Fn(&Request, &mut TcpStream) + ?Sized)) {
    let Ok(reading) = stream.try_clone() else {
        return;
    };
    let mut lines = BufReader::new(reading).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let mut words = first.split(' ').map(str::to_owned);
    let request = Request {
        method: words.next().unwrap_or_default(),
        target: words.next().unwrap_or_default(),
        headers: lines
            .take_while(|line| !line.is_empty())
            .map(|line| match line.split_once(':') {
                Some((name, value)) => format!("{}:{value}", name.to_ascii_lowercase()),
                None => line,
            })
            .collect(),
    };
    let mut stream = stream;
    answer(&request, &mut stream);
    // Whoever asked may be gone.
    let _ = stream.flush();
}
