//! Reads what `perf script` prints: samples with their stacks, and switches of threads.
//!
//! The fields are asked for by name ([`FIELDS`]), so that what is printed does not change with the version of perf. It is
//! read line by line: the text of a long recording is larger than memory.
//!
//! ```text
//! stook  4711/4712 46300.172356612:    1003009          cpu-clock:
//!         ffffffff821facd8 __schedule ([kernel.kallsyms])
//!                    d2ad7 read (/usr/lib/libc.so.6)
//!
//! stook  4711/4712 46300.172661733: PERF_RECORD_SWITCH OUT preempt
//! ```

use std::io::BufRead;

/// The fields of a sample that are asked for.
pub(super) const FIELDS: &str = "comm,pid,tid,time,period,event,ip,sym,dso";
/// Kernel addresses are in the upper half, so that all 16 digits are there, and these are the first.
const KERNEL_DIGITS: &str = "ffff";

/// One thing that perf recorded.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Record<'a> {
    /// The name of the thread.
    pub(super) name: &'a str,
    /// The number of the thread.
    pub(super) thread: u32,
    /// When, in nanoseconds.
    pub(super) time: u64,
    pub(super) event: Event<'a>,
}

/// What was recorded of a thread.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Event<'a> {
    /// A stack, because of the event of this name, such as `cpu-clock`; of a clock, for so many nanoseconds. The innermost
    /// frame comes first.
    Sample(&'a str, u64, &'a [Frame]),
    /// It leaves the processor; it would go on if it were let.
    Preempted,
    /// It leaves the processor to wait for something.
    Blocks,
    /// It gets a processor.
    Runs,
    /// It has begun another program.
    Executes,
    /// It has made this thread.
    Forks(u32),
    Ends,
    /// As many records were lost on the way.
    Lost(u64),
    /// As many samples were lost, counted at the end: they are among the records, too.
    LostSamples(u64),
}

/// One frame of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// The function; empty if it is not known.
    pub(super) function: String,
    /// The file that it lies in, without its folder; empty if it is not known.
    pub(super) module: String,
    pub(super) is_kernel: bool,
}

/// Calls `add` with each record, in the order of time. Lines that make no sense are passed over.
///
/// # Errors
/// Those of reading.
pub(super) fn read(
    mut from: impl BufRead,
    add: &mut dyn FnMut(&Record<'_>),
) -> std::io::Result<()> {
    let (mut header, mut frames) = (String::new(), Vec::new());
    let mut bytes = Vec::new();
    loop {
        bytes.clear();
        let is_end = from.read_until(b'\n', &mut bytes)? == 0;
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end();
        // The name of a thread may begin with a blank, or hold the end of a line, so that the rest of it stands alone.
        let is_frame = line.starts_with([' ', '\t']) && !header.is_empty();
        if !is_end && is_frame && start(line).is_none() {
            frames.extend(frame(line));
            continue;
        }
        if let Some(record) = record(&header, &frames) {
            add(&record);
        }
        if is_end {
            return Ok(());
        }
        frames.clear();
        line.clone_into(&mut header);
    }
}

fn record<'a>(header: &'a str, frames: &'a [Frame]) -> Option<Record<'a>> {
    let (name, thread, time, rest) = start(header)?;
    let event = match rest.strip_prefix("PERF_RECORD_") {
        Some(rest) => side_band(rest)?,
        None => {
            let (period, event) = rest.split_once(' ')?;
            let event = event.trim().trim_end_matches(':');
            Event::Sample(event, period.parse().ok()?, frames)
        }
    };
    Some(Record {
        name,
        thread,
        time,
        event,
    })
}

/// Name of the thread, its number, the time, and what follows. The name may hold anything, blanks and colons too, and be
/// empty; of one with ends of lines it is the last line.
fn start(header: &str) -> Option<(&str, u32, u64, &str)> {
    header.match_indices(": ").find_map(|(colon, _)| {
        let (before, rest) = (&header[..colon], &header[colon + 2..]);
        let (before, time) = before.rsplit_once(' ')?;
        let (seconds, fraction) = time.split_once('.')?;
        let nanoseconds = (fraction.len() == 9).then(|| fraction.parse::<u64>().ok())??;
        let time = seconds.parse::<u64>().ok()? * 1_000_000_000 + nanoseconds;
        let before = before.trim_end();
        let (name, numbers) = before.rsplit_once(' ').unwrap_or(("", before));
        let (_, thread) = numbers.split_once('/')?;
        Some((name.trim(), thread.parse().ok()?, time, rest.trim_start()))
    })
}

/// What stands behind `PERF_RECORD_`.
fn side_band(rest: &str) -> Option<Event<'static>> {
    let number = || rest.rsplit(' ').next()?.parse().ok();
    // `FORK(process:thread):(process:thread)`, the new one first.
    let thread = || rest.split(['(', ':', ')']).nth(2)?.parse().ok();
    Some(match rest.split([' ', ':', '(']).next()? {
        "SWITCH" if rest.contains(" preempt") => Event::Preempted,
        "SWITCH" if rest.contains(" OUT") => Event::Blocks,
        "SWITCH" => Event::Runs,
        "COMM" if rest.starts_with("COMM exec") => Event::Executes,
        "FORK" => Event::Forks(thread()?),
        "EXIT" => Event::Ends,
        "LOST" => Event::Lost(number()?),
        "LOST_SAMPLES" => Event::LostSamples(number()?),
        _ => return None,
    })
}

/// A line such as `  d2ad7 read (/usr/lib/libc.so.6)`.
fn frame(line: &str) -> Option<Frame> {
    let (address, rest) = line.trim_start().split_once(' ')?;
    let rest = rest.strip_suffix(')')?;
    let rest = rest.strip_suffix(" (deleted)").unwrap_or(rest);
    let (function, module) = rest.rsplit_once(" (")?;
    // The version of a symbol says nothing of where time goes.
    let function = match function.split_once('@') {
        Some((name, version)) if version != "plt" => name,
        _ => function,
    };
    let known = |text: &str| match text {
        "[unknown]" => String::new(),
        text => text.to_owned(),
    };
    let module = module.rsplit('/').next().unwrap_or(module);
    Some(Frame {
        function: known(function),
        module: known(module),
        is_kernel: address.len() == 16 && address.starts_with(KERNEL_DIGITS),
    })
}

#[cfg(test)]
impl Frame {
    /// Returns a frame of a program, or of the kernel if it is in no module.
    pub(super) fn of(function: &str, module: &str) -> Self {
        Self {
            function: function.to_owned(),
            module: module.to_owned(),
            is_kernel: module.is_empty() && !function.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn events(text: &str) -> Vec<String> {
        let mut events = Vec::new();
        read(text.as_bytes(), &mut |record| {
            let (name, thread, time) = (record.name, record.thread, record.time);
            events.push(format!("{name}/{thread} {time} {:?}", record.event));
        })
        .unwrap();
        events
    }

    #[test]
    fn samples_have_their_stacks() {
        let text = concat!(
            "sleep  7/8 45865.000000042:    1003009          cpu-clock: \n",
            "\tffffffff821facd8 __schedule ([kernel.kallsyms])\n",
            "\t           cf503 a::b<T> as (c) (/tmp/my program (deleted))\n",
            "\t           f82ad read@@GLIBC_2.2.5 (/usr/lib/libc.so.6)\n",
            "\t         bebc200 [unknown] ([unknown])\n",
            "\n",
            "a: b  7/9     1.000000001:          1 sched:sched_switch: \n",
        );
        let mut frames = [
            Frame::of("__schedule", "[kernel.kallsyms]"),
            Frame::of("a::b<T> as (c)", "my program"),
            Frame::of("read", "libc.so.6"),
            Frame::of("", ""),
        ];
        frames[0].is_kernel = true;
        let first = Event::Sample("cpu-clock", 1_003_009, &frames);
        let second = Event::Sample("sched:sched_switch", 1, &[]);
        let expected = [
            format!("sleep/8 45865000000042 {first:?}"),
            format!("a: b/9 1000000001 {second:?}"),
        ];
        assert_eq!(events(text), expected);
    }

    #[test]
    fn switches_and_the_lives_of_threads_are_read() {
        let text = concat!(
            "perf-exec 0/0 0.000000000: PERF_RECORD_COMM: perf-exec:7/7\n",
            "x 7/7 1.000000001: PERF_RECORD_COMM exec: x:7/7\n",
            "x 7/7 1.000000002: PERF_RECORD_FORK(7:8):(7:7)\n",
            "x 7/8 1.000000003: PERF_RECORD_SWITCH OUT        \n",
            "x 7/8 1.000000004: PERF_RECORD_SWITCH OUT preempt\n",
            "x 7/8 1.000000005: PERF_RECORD_SWITCH IN         \n",
            "x 7/8 1.000000006: PERF_RECORD_EXIT(7:8):(7:7)\n",
            "x 7/7 1.000000007: PERF_RECORD_LOST lost 21\n",
            "x 7/7 1.000000008: PERF_RECORD_LOST_SAMPLES lost 5\n",
        );
        let expected = [
            "x/7 1000000001 Executes",
            "x/7 1000000002 Forks(8)",
            "x/8 1000000003 Blocks",
            "x/8 1000000004 Preempted",
            "x/8 1000000005 Runs",
            "x/8 1000000006 Ends",
            "x/7 1000000007 Lost(21)",
            "x/7 1000000008 LostSamples(5)",
        ];
        assert_eq!(events(text), expected);
    }

    #[test]
    fn odd_names_of_threads_lose_no_record() {
        let text = concat!(
            "x 7/7 1.000000001: 9 cpu-clock:\n\t  12 f (/bin/x)\n\n",
            " a 7/7 1.000000002: PERF_RECORD_SWITCH OUT\n",
            "   7/7 1.000000003: PERF_RECORD_SWITCH IN\n",
            "7/7 1.000000004: PERF_RECORD_SWITCH OUT\n",
            "a\n b 1/2 7/7 1.000000005: PERF_RECORD_SWITCH IN\n",
            "a\n\tc: d 7/7 1.000000006: PERF_RECORD_SWITCH OUT\n",
        );
        let events = events(text);
        let expected = [
            "a/7 1000000002 Blocks",
            "/7 1000000003 Runs",
            "/7 1000000004 Blocks",
            "b 1/2/7 1000000005 Runs",
            "c: d/7 1000000006 Blocks",
        ];
        assert_eq!(events[1..], expected);
        assert!(events[0].contains("\"f\""), "{events:?}");
    }

    #[test]
    fn what_makes_no_sense_is_passed_over() {
        let text = "Warning: something\n\n  \nx 1/2 3.4: y\nx 1/2 1.000000000: \n";
        assert!(events(text).is_empty());
    }
}
