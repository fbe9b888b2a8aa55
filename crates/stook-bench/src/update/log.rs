//! What an archiver says of its own phases, read from its stderr.
//!
//! ```text
//!   {"type":"phases","phases":[{"name":"survey","seconds":0.1,"peak_bytes":9000000,..},..]}    stook -v --json, of stdout too
//!   {"type":"summary","sent":{"seconds":1.5,..},..}                                            a stook that sent to a store
//!   DEBUG: PROFILE: File gathering completed: 1.23 seconds                                     zstash -v
//! ```
//! zstash's lines come in several forms: the word is `PROFILE`, or `PERFORMANCE` in the public development branch, an operation
//! in parentheses may stand behind it, and the unit is `seconds` or `s`. What has no time at its end is passed over.

use serde::Deserialize;

use crate::record::{Phase, Sample};

/// What a log said.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Logged {
    phases: Vec<Phase>,
    /// How long something was on its way to a store.
    sending: Option<f64>,
    /// The most memory of all phases.
    peak_bytes: Option<u64>,
}

/// A line of JSON that stook prints; of others only the type is looked at.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line {
    Phases {
        phases: Vec<TimedPhase>,
    },
    Summary {
        sent: Option<Sent>,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct TimedPhase {
    name: String,
    seconds: f64,
    peak_bytes: Option<u64>,
}

#[derive(Deserialize)]
struct Sent {
    seconds: f64,
}

/// The phase in which stook waits for what was not sent beside the others.
const SEND: &str = "send";

impl Logged {
    /// Reads all that a command wrote on stderr.
    pub(super) fn read(log: &[u8]) -> Self {
        let mut logged = Self::default();
        for line in String::from_utf8_lossy(log).lines() {
            match line.starts_with('{') {
                true => logged.add_json(line),
                false => logged.phases.extend(profiled(line)),
            }
        }
        logged
    }

    fn add_json(&mut self, line: &str) {
        // What looks like JSON and is none is no line of stook's.
        match serde_json::from_str(line) {
            Ok(Line::Phases { phases }) => {
                let peaks = phases.iter().filter_map(|phase| phase.peak_bytes);
                self.peak_bytes = peaks.chain(self.peak_bytes).max();
                let plain = |phase: TimedPhase| Phase {
                    name: phase.name,
                    seconds: phase.seconds,
                };
                self.phases.extend(phases.into_iter().map(plain));
            }
            Ok(Line::Summary { sent }) => self.sending = sent.map(|sent| sent.seconds),
            Ok(Line::Other) | Err(_) => {}
        }
    }

    /// Notes it in a sample. The peak of a command that tells one for each phase is forgotten by the kernel when the next one begins.
    pub(super) fn note(self, sample: &mut Sample) {
        if self.sending.is_some() {
            let built = self.phases.iter().filter(|phase| phase.name != SEND);
            sample.building_seconds = Some(built.map(|phase| phase.seconds).sum());
            sample.sending_seconds = self.sending;
        }
        sample.peak_bytes = sample.peak_bytes.max(self.peak_bytes);
        sample.phases = self.phases;
    }
}

/// Returns the phase that a line of zstash's log tells.
fn profiled(line: &str) -> Option<Phase> {
    let words = ["PROFILE", "PERFORMANCE"];
    let (_, rest) = words.iter().find_map(|word| line.split_once(word))?;
    let (before, time) = rest.rsplit_once(": ")?;
    let number = ["seconds", "s"]
        .iter()
        .find_map(|unit| time.trim_end().strip_suffix(unit))?;
    let seconds: f64 = number.trim_end().parse().ok()?;
    let name = before.trim_matches([' ', ':']);
    let name = name.strip_prefix('(').unwrap_or(name);
    (!name.is_empty() && seconds >= 0.0).then(|| Phase {
        name: name.replacen("):", ":", 1),
        seconds,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases(log: &str) -> Vec<(String, f64)> {
        let phases = Logged::read(log.as_bytes()).phases.into_iter();
        phases.map(|phase| (phase.name, phase.seconds)).collect()
    }

    #[test]
    fn building_ends_where_only_sending_is_left() {
        let log = "{\"type\":\"header\",\"schema\":1}\nnote: something\n\
            {\"type\":\"phases\",\"phases\":[{\"name\":\"survey\",\"seconds\":0.25,\"share\":0.1,\"peak_bytes\":900},\
            {\"name\":\"archive\",\"seconds\":1.0,\"peak_bytes\":null},{\"name\":\"send\",\"seconds\":0.5,\"peak_bytes\":700}]}\n\
            {\"type\":\"summary\",\"entries\":3,\"sent\":{\"volumes\":1,\"seconds\":1.25}}\n{no json\n";
        let mut sample = Sample {
            peak_bytes: Some(800),
            ..Sample::default()
        };
        Logged::read(log.as_bytes()).note(&mut sample);
        let times = (sample.building_seconds, sample.sending_seconds);
        assert_eq!(times, (Some(1.25), Some(1.25)));
        assert_eq!((sample.peak_bytes, sample.phases.len()), (Some(900), 3));
        let mut local = Sample::default();
        Logged::read(b"{\"type\":\"summary\",\"sent\":null}").note(&mut local);
        assert_eq!(local, Sample::default());
    }

    #[test]
    fn lines_of_zstash_are_read_in_all_their_forms() {
        let log = "DEBUG: PROFILE: File gathering completed: 1.23 seconds\n\
            DEBUG: PERFORMANCE (scandir): Completed filesystem walk with stats\n\
            DEBUG: PERFORMANCE (sort): Sorted 12 entries: 0.02 seconds\n\
            DEBUG: PROFILE: Files checked: 4021\nDEBUG: PROFILE Add files: 12.5s\n\
            DEBUG: PERFORMANCE: Total execution time (dry-run): 3.40 seconds\nINFO: Archiving run/PROFILE: 3 things\n";
        let expected = [
            ("File gathering completed", 1.23),
            ("sort: Sorted 12 entries", 0.02),
            ("Add files", 12.5),
            ("Total execution time (dry-run)", 3.4),
        ];
        let expected = expected.map(|(name, seconds)| (name.to_owned(), seconds));
        assert_eq!(phases(log), expected);
    }
}
