//! `slowlink PORT [--round-trip MILLISECONDS] [--rate BYTES_PER_SECOND]` carries connections to a port of this machine over a
//! link with a round trip time and a bandwidth.
//!
//! The command line over [`stook_testkit::servers::SlowLink`], for benches. It prints the URL of the link, ends when its
//! input does, and writes the bytes that went over it then, as JSON.
#![expect(clippy::print_stderr, reason = "this is a program")]

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::time::Duration;

use stook_testkit::servers::{LinkOptions, SlowLink};

const USAGE: &str = "usage: slowlink PORT [--round-trip MILLISECONDS] [--rate BYTES_PER_SECOND]\n\
     [default: 20 ms, 125000000 bytes a second; a rate of 0 is none]";

fn main() -> ExitCode {
    let Some((port, options)) = read(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(port, options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn read(mut arguments: impl Iterator<Item = String>) -> Option<(u16, LinkOptions)> {
    let (mut port, mut options) = (None, LinkOptions::wide_area());
    while let Some(argument) = arguments.next() {
        match &*argument {
            "--round-trip" => {
                options.round_trip = Duration::from_millis(arguments.next()?.parse().ok()?);
            }
            "--rate" => {
                let rate: u64 = arguments.next()?.parse().ok()?;
                options.bytes_per_second = (rate > 0).then_some(rate);
            }
            number => port = Some(number.parse().ok()?),
        }
    }
    Some((port?, options))
}

fn run(port: u16, options: LinkOptions) -> io::Result<()> {
    let link = SlowLink::start(port, options)?;
    let mut output = io::stdout();
    writeln!(output, "{}", link.url())?;
    output.flush()?;
    io::stdin().read_to_end(&mut Vec::new())?;
    let counts = link.counts();
    writeln!(
        output,
        r#"{{"sent":{},"received":{},"connections":{}}}"#,
        counts.sent, counts.received, counts.connections
    )
}
