//! What a bench of caches found, and in words how each state was made.

use super::measured::MeasuredCommand;
use super::{CacheOptions, CacheTables, State};
use crate::page_state::Method;
use crate::record::Sample;

/// The samples of all runs, and what a reader must know of them.
#[derive(Debug)]
pub struct CacheOutcome {
    /// One for each run, in their order.
    pub samples: Vec<Sample>,
    /// How the states were made and what proves them, a sentence each.
    pub legend: Vec<String>,
}

impl CacheOutcome {
    pub(super) fn new(
        samples: Vec<Sample>,
        commands: &[MeasuredCommand<'_>],
        options: &CacheOptions,
        method: Method,
    ) -> Self {
        let mut legend: Vec<String> = commands
            .first()
            .iter()
            .flat_map(|command| command.states().iter())
            .map(|state| format!("{}: {}", state.name(), made(*state, options, method)))
            .collect();
        legend.extend(commands.iter().map(proof));
        Self { samples, legend }
    }

    /// Returns the tables, the warnings and the legend.
    pub fn text(&self) -> String {
        let mut text = CacheTables::of(&self.samples).text();
        text.push('\n');
        for line in &self.legend {
            text.push_str(line);
            text.push('\n');
        }
        text
    }
}

/// What is done before a run.
fn made(state: State, options: &CacheOptions, method: Method) -> String {
    let hook = match state {
        State::Cold => options.cold_hook.as_ref(),
        State::Warm => options.warm_hook.as_ref(),
        State::Hot => None,
    };
    let mut hook = hook.map_or(String::new(), |hook| format!("`{}`, then ", hook.text()));
    if options.server.is_some() {
        hook.push_str(match state {
            State::Cold => "what the server of the mount keeps dropped, then ",
            State::Warm | State::Hot => "what the server of the mount has in memory dropped, then ",
        });
    }
    match (state, method) {
        (State::Hot, _) => "right after another run of the same command".to_owned(),
        (_, Method::Fadvise) => format!(
            "{hook}the data of the files that it reads dropped from memory, one after the other (posix_fadvise); names and inodes stay in memory, which only root may drop"
        ),
        (State::Warm, _) if !options.has_hooks() => {
            "names and inodes in memory, data dropped (drop_caches 1)".to_owned()
        }
        (State::Warm, _) => {
            format!("{hook}data, names and inodes dropped (drop_caches 3); what lies on disk stays")
        }
        (State::Cold, _) => format!("{hook}data, names and inodes dropped (drop_caches 3)"),
    }
}

fn proof(command: &MeasuredCommand<'_>) -> String {
    let inputs = command.inputs();
    let whose = if command.is_local() { "local " } else { "" };
    let (files, pages) = (inputs.count(), inputs.pages());
    let (file, page) = (noun(files as u64, "file"), noun(pages, "page"));
    let what = match (files, pages) {
        (0, _) => "none".to_owned(),
        (_, 0) => format!("the names of {file} that the command opens, none of which has pages"),
        _ => format!("{page} and the names of {file} that the command opens"),
    };
    format!("{whose}proof: {what}{}", inputs.left_out())
}

fn noun(number: u64, one: &str) -> String {
    format!("{number} {one}{}", if number == 1 { "" } else { "s" })
}
