//! A link to a server with a round trip time and a bandwidth, on one machine: a proxy that holds every byte back.
//!
//! ```text
//!   client ──> reader ──(due, bytes)──> writer ──> server          the same in the other direction
//!                │
//!                └── the line: bytes of all connections leave one after the other, at the rate of the link;
//!                    each piece is due half a round trip after it has left
//! ```
//! A connection takes a round trip before anything is sent on it. What is not emulated: loss, and the slow start of
//! TCP. Two threads for each direction of a connection, and a queue of bounded length between them, so that a reader
//! that does not read slows down the sender.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that travel as one piece.
const PIECE_BYTES: usize = 16 << 10;

/// Pieces on their way in one direction of a connection: 16 MiB, more than 100 ms at 1 Gbit/s.
const PIECES: usize = 1024;

/// What a link is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkOptions {
    /// Time from a byte that is sent to the first byte of an answer, the server's own time aside.
    pub round_trip: Duration,
    /// Bytes a second in each direction, over all connections together; None: as many as can be.
    pub bytes_per_second: Option<u64>,
}

impl LinkOptions {
    /// Returns a link of 20 ms and 1 Gbit/s.
    #[must_use]
    pub fn wide_area() -> Self {
        Self {
            round_trip: Duration::from_millis(20),
            bytes_per_second: Some(125_000_000),
        }
    }
}

/// Bytes that went over a link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounts {
    /// To the server.
    pub sent: u64,
    /// From the server.
    pub received: u64,
    /// Connections.
    pub connections: u64,
}

/// A proxy on a port of this machine; dropping it closes its connections.
#[derive(Debug)]
pub struct SlowLink {
    port: u16,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: LinkOptions,
    up: Line,
    down: Line,
    connections: AtomicU64,
    is_over: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl SlowLink {
    /// Starts a proxy for the server at a port of this machine.
    ///
    /// # Errors
    /// When no port is free.
    pub fn start(server: u16, options: LinkOptions) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let shared = Arc::new(Shared {
            options,
            up: Line::new(options.bytes_per_second),
            down: Line::new(options.bytes_per_second),
            connections: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let serving = Arc::clone(&shared);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server));
        thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { return };
                if serving.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let serving = Arc::clone(&serving);
                // A server that is not there closes the connection, as it would its own.
                thread::spawn(move || serving.connect(client, address));
            }
        });
        Ok(Self { port, shared })
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

    /// Returns what went over it so far.
    #[must_use]
    pub fn counts(&self) -> LinkCounts {
        LinkCounts {
            sent: self.shared.up.bytes.load(Ordering::Relaxed),
            received: self.shared.down.bytes.load(Ordering::Relaxed),
            connections: self.shared.connections.load(Ordering::Relaxed),
        }
    }

    /// Closes all connections that are open now; new ones are taken.
    pub fn cut(&self) {
        let mut open = self
            .shared
            .open
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for stream in open.drain(..) {
            // It may be closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // The thread that waits for connections sees that it is over.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        self.cut();
    }
}

impl Shared {
    fn connect(self: Arc<Self>, client: TcpStream, server: SocketAddr) -> io::Result<()> {
        thread::sleep(self.options.round_trip);
        let server = TcpStream::connect(server)?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        self.connections.fetch_add(1, Ordering::Relaxed);
        {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            // Those of connections that have ended.
            open.retain(|stream| stream.peer_addr().is_ok());
            open.extend([client.try_clone()?, server.try_clone()?]);
        }
        let answers = (server.try_clone()?, client.try_clone()?);
        let down = Arc::clone(&self);
        thread::spawn(move || down.carry(&down.down, answers));
        self.carry(&self.up, (client, server));
        Ok(())
    }

    /// Carries bytes in one direction until one end closes.
    fn carry(&self, line: &Line, (mut from, to): (TcpStream, TcpStream)) {
        let (sender, receiver) = sync_channel(PIECES);
        thread::spawn(move || deliver(&receiver, to));
        let mut buffer = vec![0; PIECE_BYTES];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let due = line.leave(count) + self.options.round_trip / 2;
            if send(&sender, due, &buffer[..count]).is_err() {
                break;
            }
        }
        // It may be closed already.
        let _ = from.shutdown(Shutdown::Read);
    }
}

/// # Errors
/// When nobody takes it any more.
fn send(sender: &SyncSender<(Instant, Vec<u8>)>, due: Instant, bytes: &[u8]) -> Result<(), ()> {
    sender.send((due, bytes.to_vec())).map_err(|_closed| ())
}

/// Writes each piece when it is due.
fn deliver(receiver: &Receiver<(Instant, Vec<u8>)>, mut to: TcpStream) {
    for (due, bytes) in receiver {
        thread::sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    // It may be closed already.
    let _ = to.shutdown(Shutdown::Write);
}

/// One direction of the link: when it is free again.
#[derive(Debug)]
struct Line {
    bytes_per_second: Option<u64>,
    free_at: Mutex<Instant>,
    bytes: AtomicU64,
}

impl Line {
    fn new(bytes_per_second: Option<u64>) -> Self {
        Self {
            bytes_per_second,
            free_at: Mutex::new(Instant::now()),
            bytes: AtomicU64::new(0),
        }
    }

    /// Returns when the last of so many bytes has left, which begin as soon as those before them have.
    fn leave(&self, count: usize) -> Instant {
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
        let now = Instant::now();
        let Some(rate) = self.bytes_per_second else {
            return now;
        };
        let nanoseconds = count as u64 * 1_000_000_000 / rate.max(1);
        let mut free_at = self.free_at.lock().unwrap_or_else(PoisonError::into_inner);
        *free_at = now.max(*free_at) + Duration::from_nanos(nanoseconds);
        *free_at
    }
}
