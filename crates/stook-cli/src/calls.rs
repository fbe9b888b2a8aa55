//! `--syscalls`: the table of `strace -c`, of the system calls on the tree, counted by this program itself.

use std::io;

use stook_sys::CallCount;

use crate::number::part;
use crate::output::{self, Data};
use crate::report::{Line, Syscall};

/// Prints the table: the most time first.
pub(crate) fn print(is_json: bool) -> io::Result<()> {
    let mut counts = stook_sys::counted_calls();
    counts.sort_by_key(|count| std::cmp::Reverse(count.total));
    if !is_json {
        output::message(&table(&counts));
        return Ok(());
    }
    let mut data = Data::new();
    for count in &counts {
        data.json(&Line::Syscall(Syscall::new(count)))?;
    }
    data.flush()
}

fn table(counts: &[CallCount]) -> String {
    let all: f64 = counts.iter().map(|count| count.total.as_secs_f64()).sum();
    let mut text = format!(
        "{:>6} {:>11} {:>11} {:>9} {:>9} {}",
        "% time", "seconds", "usecs/call", "calls", "errors", "syscall"
    );
    for count in counts {
        let seconds = count.total.as_secs_f64();
        let share = 100.0 * part(seconds, all);
        let each = 1e6 * seconds / count.calls as f64;
        let errors = match count.errors {
            0 => String::new(),
            errors => errors.to_string(),
        };
        text.push_str(&format!(
            "\n{share:>6.2} {seconds:>11.6} {each:>11.2} {:>9} {errors:>9} {}",
            count.calls, count.name
        ));
    }
    let calls: u64 = counts.iter().map(|count| count.calls).sum();
    let errors: u64 = counts.iter().map(|count| count.errors).sum();
    text.push_str(&format!(
        "\n{:>6} {all:>11.6} {:>11} {calls:>9} {errors:>9} total",
        "100.00", ""
    ));
    text
}
