//! Results as JSON lines: one header, then a sample a line.
//!
//! ```text
//! {"type":"header","format":1,"kind":"cache","stook":"0.1.0","started":"2026-11-21T10:00:00Z","machine":{...},...}
//! {"type":"sample","round":1,"labels":{"state":"cold"},"real_seconds":1.25,...}
//! ```
//! Fields that a reader does not know are passed over; what an old reader must not pass over raises `format`.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::BenchError;
use crate::latency::Latencies;
use crate::machine::Machine;

/// The format that is written; readers refuse newer ones.
const FORMAT: u32 = 1;

/// What the bench itself held when it started a command, in the proofs of samples that versions without a launcher wrote:
/// a peak near it says only that the command held no more.
const HELD_BYTES: &str = "held_bytes";

/// How the proof of a sample tells for which share of the run some program of the machine waited for a processor.
pub(crate) const WAITED_SHARE: &str = "waited_share";

/// Which bench made the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// `stook bench fs`: labels `target`, `phase`, `tool`.
    Fs,
    /// `stook bench cache`: label `state`: `cold`, `warm`, `hot`, and `local cold` and so on of the local command.
    Cache,
    /// `stook bench update`: labels `tool`, `create`, `update`, `operation`, and `store` where archives are sent to one.
    Update,
}

/// What holds for all samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The format of the lines.
    pub format: u32,
    /// Which bench.
    pub kind: Kind,
    /// The version of stook.
    pub stook: String,
    /// When, as in `2026-11-21T10:00:00Z`.
    pub started: String,
    /// Where.
    pub machine: Machine,
    /// The programs that were measured, each with what it says of its version.
    pub programs: BTreeMap<String, String>,
    /// What was asked for, in the words of the command line.
    pub options: BTreeMap<String, serde_json::Value>,
    /// Figures of the files that were used, if there was one set of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<serde_json::Value>,
    /// Facts about what the labels name, such as the file system of each target: by label, then by fact.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, BTreeMap<String, String>>,
}

impl Header {
    /// Returns a header without programs, options and files; `started` as in `2026-11-21T10:00:00Z`.
    pub fn new(kind: Kind, started: &str) -> Self {
        Self {
            format: FORMAT,
            kind,
            stook: env!("CARGO_PKG_VERSION").to_owned(),
            started: started.to_owned(),
            machine: Machine::this(),
            programs: BTreeMap::new(),
            options: BTreeMap::new(),
            files: None,
            facts: BTreeMap::new(),
        }
    }
}

/// One run of one command.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// The round, from 1.
    pub round: u32,
    /// What was measured: by the names that [`Kind`] says.
    pub labels: BTreeMap<String, String>,
    /// Wall time.
    pub real_seconds: f64,
    /// CPU time of the command and its children in user space.
    pub user_seconds: f64,
    /// CPU time of the command and its children in the kernel.
    pub system_seconds: f64,
    /// CPU time of the process that served it meanwhile, such as that of a mount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_seconds: Option<f64>,
    /// How long the command waited for a processor although it was ready; None where the kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_delay_seconds: Option<f64>,
    /// The most memory that the command or one of its children held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// Files that were handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Bytes that were handled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How long the command built what it sent to a store: sending goes on beside that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub building_seconds: Option<f64>,
    /// How long something was on its way to a store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending_seconds: Option<f64>,
    /// What the command said of its own phases, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// Times of single operations, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub latencies: BTreeMap<String, Latencies>,
    /// What was found of the state before the run, such as the share of pages in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub proof: BTreeMap<String, serde_json::Value>,
}

/// A phase of a command, as it said itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Its wall time.
    pub seconds: f64,
}

impl Sample {
    /// Returns the label of this name; an empty one if there is none.
    pub fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// Takes away a peak that may be that of the bench, in samples of versions that had no launcher.
    fn forget_peak_of_the_bench(&mut self) {
        let held = self.proof.remove(HELD_BYTES).and_then(|held| held.as_u64());
        // The kernel adds up what its processors count only now and then, so the two are not quite alike.
        let is_own = |peak: &u64| held.is_none_or(|held| *peak > held.saturating_add(held / 20));
        self.peak_bytes = self.peak_bytes.filter(is_own);
    }

    /// Returns the CPU time of the command, its children, and what served them.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds + self.served_seconds.unwrap_or(0.0)
    }
}

/// Returns labels of a sample.
pub(crate) fn labels<const N: usize>(labels: [(&str, &str); N]) -> BTreeMap<String, String> {
    labels
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
}

/// A header or a sample, as a line.
#[derive(Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Line<T, U> {
    Header(T),
    Sample(U),
}

impl Header {
    /// Returns the header as one line of JSON, without its end.
    pub fn line(&self) -> String {
        json(&Line::<_, &Sample>::Header(self))
    }
}

impl Sample {
    /// Returns the sample as one line of JSON, without its end.
    pub fn line(&self) -> String {
        json(&Line::<&Header, _>::Sample(self))
    }
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("maps have text as keys")
}

/// The results of one run of a bench.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// What holds for all samples.
    pub header: Header,
    /// The samples, in their order.
    pub samples: Vec<Sample>,
}

/// Reads a file of results: those of each run that it holds.
///
/// # Errors
/// [`BenchError::Sys`] if it cannot be read, [`BenchError::Newer`] if a later version wrote it, [`BenchError::Results`]
/// for a line that makes no sense or a sample before any header.
pub fn read_results(path: &Path) -> Result<Vec<Results>, BenchError> {
    let text = stook_sys::read_text(path)?;
    let mut read = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if !line.trim().is_empty() {
            read_line(line, &mut read).map_err(|wrong| wrong.at(path, number + 1))?;
        }
    }
    if read.is_empty() {
        return Err(Wrong::Invalid("it holds no results".to_owned()).at(path, 1));
    }
    Ok(read)
}

/// What is wrong with a line.
enum Wrong {
    Newer(u32),
    Invalid(String),
}

impl Wrong {
    fn at(self, path: &Path, line: usize) -> BenchError {
        let path = path.to_owned();
        match self {
            Self::Newer(found) => BenchError::Newer {
                path,
                found,
                known: FORMAT,
            },
            Self::Invalid(why) => BenchError::Results { path, line, why },
        }
    }
}

impl From<serde_json::Error> for Wrong {
    fn from(error: serde_json::Error) -> Self {
        let text = error.to_string();
        // The line within the one line is always 1.
        let why = text.split(" at line 1").next().unwrap_or(&text);
        Self::Invalid(why.to_owned())
    }
}

fn read_line(line: &str, read: &mut Vec<Results>) -> Result<(), Wrong> {
    // The format is looked at before the rest, which a later version may have changed.
    let value: serde_json::Value = serde_json::from_str(line)?;
    let format = value.get("format").and_then(serde_json::Value::as_u64);
    if let Some(format) = format.and_then(|format| u32::try_from(format).ok())
        && format > FORMAT
    {
        return Err(Wrong::Newer(format));
    }
    // A summary, or what else stands between the samples that `--json` prints.
    let line = value.get("type").and_then(serde_json::Value::as_str);
    if line.is_some_and(|line| line != "header" && line != "sample") {
        return Ok(());
    }
    match serde_json::from_value::<Line<Header, Sample>>(value)? {
        Line::Header(header) => read.push(Results {
            header,
            samples: Vec::new(),
        }),
        Line::Sample(mut sample) => {
            let times = [
                sample.real_seconds,
                sample.user_seconds,
                sample.system_seconds,
            ];
            if times.iter().any(|seconds| *seconds < 0.0) {
                return Err(Wrong::Invalid("a time is less than 0".to_owned()));
            }
            let before = || Wrong::Invalid("a sample stands before any header".to_owned());
            sample.forget_peak_of_the_bench();
            read.last_mut().ok_or_else(before)?.samples.push(sample);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stook_testkit::TempDir;

    const NOW: &str = "2026-11-21T10:00:00Z";

    fn read(text: &str) -> Result<Vec<Results>, BenchError> {
        let folder = TempDir::new().unwrap();
        let path = folder.join("results.jsonl");
        std::fs::write(&path, text).unwrap();
        read_results(&path)
    }

    fn why(text: &str) -> String {
        let error = read(text).unwrap_err().to_string();
        let (_, why) = error.split_once("results.jsonl`").unwrap();
        why.to_owned()
    }

    #[test]
    fn what_is_written_is_read() {
        let header = Header::new(Kind::Cache, NOW);
        let mut sample = Sample {
            round: 2,
            real_seconds: 0.25,
            ..Sample::default()
        };
        sample.labels.insert("state".to_owned(), "cold".to_owned());
        sample
            .latencies
            .insert("open".to_owned(), Latencies::default());
        let text = format!(
            "{}\n{}\n\n{}\n",
            header.line(),
            sample.line(),
            header.line()
        );
        let read = read(&text).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(
            (&read[0].header, &read[0].samples),
            (&header, &vec![sample])
        );
        assert!(read[1].samples.is_empty());
    }

    #[test]
    fn a_peak_that_an_older_version_could_not_tell_from_its_own_is_not_known() {
        let peak = |held: u64| {
            let mut sample = Sample {
                peak_bytes: Some(1000),
                ..Sample::default()
            };
            sample.proof.insert(HELD_BYTES.to_owned(), held.into());
            let text = format!("{}\n{}\n", Header::new(Kind::Fs, NOW).line(), sample.line());
            read(&text).unwrap()[0].samples[0].peak_bytes
        };
        assert_eq!((peak(100), peak(960)), (Some(1000), None));
    }

    #[test]
    fn results_of_a_newer_version_are_refused() {
        let text = r#"{"type":"header","format":7,"kind":"something new"}"#;
        let error = read(text).unwrap_err();
        assert!(matches!(
            error,
            BenchError::Newer {
                found: 7,
                known: FORMAT,
                ..
            }
        ));
    }

    #[test]
    fn a_field_of_a_later_version_of_the_same_format_is_passed_over() {
        let line = Header::new(Kind::Fs, NOW)
            .line()
            .replace("\"kind\"", "\"news\":[1],\"kind\"");
        let summary = r#"{"type":"summary","samples":0}"#;
        assert_eq!(read(&format!("{line}\n{summary}\n")).unwrap().len(), 1);
    }

    #[test]
    fn invalid_lines_are_reported_with_their_number() {
        let sample = Sample::default().line();
        assert_eq!(why(&sample), ", line 1: a sample stands before any header");
        assert_eq!(why("\n"), ", line 1: it holds no results");
        let header = Header::new(Kind::Fs, NOW).line();
        assert!(why(&format!("{header}\n{{\"type\":")).starts_with(", line 2: EOF"));
        assert!(why(&format!("{header}\n[]")).starts_with(", line 2: "));
        let past = sample.replace("\"real_seconds\":0.0", "\"real_seconds\":-0.5");
        assert_eq!(
            why(&format!("{header}\n{past}")),
            ", line 2: a time is less than 0"
        );
    }
}
