//! A link takes the time that it should, keeps every byte in order, and ends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use stook_testkit::Random;
use stook_testkit::servers::{Canned, LinkOptions, SlowLink};

const BYTES: usize = 1 << 20;

/// A server that sends the same bytes to whoever asks.
fn server() -> (Canned, Vec<u8>) {
    let bytes = Random::new(1).bytes(BYTES);
    let sent = bytes.clone();
    let server = Canned::start(move |_, stream| {
        // Whoever asked may be gone.
        let _ = stream.write_all(&sent);
    });
    (server, bytes)
}

fn ask(port: u16) -> Vec<u8> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    // A connection that was cut ends with an error, or early.
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn bytes_arrive_late_at_the_rate_of_the_link_and_unchanged() {
    let (server, bytes) = server();
    let options = LinkOptions {
        round_trip: Duration::from_millis(30),
        bytes_per_second: Some(10 << 20),
    };
    let link = SlowLink::start(server.port(), options).unwrap();
    let begin = Instant::now();
    thread::scope(|scope| {
        let asking = [(); 2].map(|()| scope.spawn(|| ask(link.port())));
        for asked in asking {
            assert!(asked.join().unwrap() == bytes);
        }
    });
    // A round trip to connect and one to ask; both share the line.
    let least = 2 * options.round_trip + Duration::from_millis(200);
    assert!(begin.elapsed() >= least, "{:?}", begin.elapsed());
    let counts = link.counts();
    assert_eq!(counts.received, 2 * BYTES as u64);
    assert_eq!((counts.sent, counts.connections), (36, 2));
}

#[test]
fn a_link_that_is_cut_ends_what_is_on_it_and_takes_new_connections() {
    let (server, bytes) = server();
    let options = LinkOptions {
        round_trip: Duration::ZERO,
        bytes_per_second: Some(1 << 20),
    };
    let link = SlowLink::start(server.port(), options).unwrap();
    let part = thread::scope(|scope| {
        let asked = scope.spawn(|| ask(link.port()));
        while link.counts().received == 0 {
            thread::sleep(Duration::from_millis(5));
        }
        link.cut();
        asked.join().unwrap()
    });
    assert!(part.len() < BYTES && bytes.starts_with(&part));
    assert!(ask(link.port()) == bytes);
    drop(server);
    let gone = SlowLink::start(stook_testkit::servers::free_port().unwrap(), options).unwrap();
    assert_eq!(ask(gone.port()), b"");
}

#[test]
fn the_program_ends_with_its_input_and_tells_what_it_carried() {
    let (server, bytes) = server();
    let mut program = Command::new(env!("CARGO_BIN_EXE_slowlink"))
        .args([&server.port().to_string(), "--round-trip", "1"])
        .args(["--rate", "0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = program.stdout.take().unwrap();
    let mut url = Vec::new();
    while !url.ends_with(b"\n") {
        let mut byte = [0];
        output.read_exact(&mut byte).unwrap();
        url.push(byte[0]);
    }
    let url = String::from_utf8(url).unwrap();
    let port = url.trim().rsplit_once(':').unwrap().1.parse().unwrap();
    assert!(ask(port) == bytes);
    drop(program.stdin.take());
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert_eq!(
        rest,
        format!("{{\"sent\":18,\"received\":{BYTES},\"connections\":1}}\n")
    );
    assert!(program.wait().unwrap().success());
}
