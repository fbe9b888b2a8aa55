//! `list --runs`: one line for each run, and for rows that no run added.

use std::io;

use serde_json::json;
use stook_archive::{RunCounts, Writer};

use crate::output::Data;
use crate::size::grouped;

pub(crate) fn print(counts: &[RunCounts], is_json: bool, data: &mut Data) -> io::Result<()> {
    counts.iter().try_for_each(|counts| {
        if is_json {
            print_json(counts, data)
        } else {
            data.line(&line(counts))
        }
    })
}

fn line(counts: &RunCounts) -> String {
    let (run, command, started, finished, failed) = match &counts.writer {
        Writer::Run(run) => (
            run.id.to_string(),
            &*run.command,
            run.started.to_string(),
            run.finished
                .map_or_else(|| "unfinished".to_owned(), |time| time.to_string()),
            run.failed,
        ),
        Writer::Other => ("-".to_owned(), "no run", "-".to_owned(), "-".to_owned(), 0),
    };
    format!(
        "{run:>4} {command:<8} {started:<26} {finished:<26} {:>12} added {:>12} deleted {:>8} failed",
        grouped(counts.added),
        grouped(counts.deleted),
        grouped(failed),
    )
}

fn print_json(counts: &RunCounts, data: &mut Data) -> io::Result<()> {
    let RunCounts { added, deleted, .. } = counts;
    match &counts.writer {
        Writer::Run(run) => data.json(&json!({
            "run": run.id.0, "command": run.command, "started": run.started.to_string(),
            "finished": run.finished.map(|time| time.to_string()), "members": added, "added": added, "deleted": deleted, "failed": run.failed,
        })),
        Writer::Other => data.json(&json!({ "run": null, "command": null, "members": added, "added": added, "deleted": deleted })),
    }
}
