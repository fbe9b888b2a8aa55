//! From the threads' trees to one report: nodes of the same names all the way up become one record.
//!
//! A scope's own time is taken within each thread before the threads are added up, so helpers that
//! ran at the same time never eat into it.

use std::time::Duration;

use crate::clock;
use crate::node::{Node, Numbers};
use crate::registry::Records;
use crate::report::{ProcessCpu, Record, Report};

/// Adds up all threads' records.
pub(crate) fn merge(records: &Records<'_>) -> Report {
    let now = clock::now();
    let mut roots = Vec::new();
    for tree in records.trees {
        add_children(&mut roots, tree.root, now);
    }
    if records.process_cpu.is_none() {
        remove_cpu(&mut roots);
    }
    let in_scopes = records
        .trees
        .iter()
        .map(|tree| outermost_cpu(tree.root, now));
    let in_scopes = Duration::from_nanos(in_scopes.sum());
    let process_cpu = records.process_cpu.map(|total| ProcessCpu {
        total: Duration::from_nanos(total),
        in_scopes,
    });
    prune_and_sort(&mut roots);
    Report {
        roots,
        dropped: records.dropped,
        threads: records.threads,
        process_cpu,
        ..Report::default()
    }
}

/// Adds the children of `node` to `records`; returns the time of those that ran on the same thread.
/// The recursion is as deep as the nodes, which [`MAX_DEPTH`](crate::MAX_DEPTH) bounds.
fn add_children(records: &mut Vec<Record>, node: &Node, now: u64) -> u64 {
    let mut timed: u64 = 0;
    for child in node.children() {
        let name = child.callsite().name();
        let at = records
            .iter()
            .position(|record| record.name == name)
            .unwrap_or_else(|| {
                records.push(Record::new(name));
                records.len() - 1
            });
        // Children before their parent: a call that ends in between makes own time too long, not negative.
        let inner = add_children(&mut records[at].children, child, now);
        let numbers = child.numbers(now);
        let total = numbers.total.saturating_add(numbers.running.unwrap_or(0));
        add(&mut records[at], &numbers, total, inner);
        if child.is_timed() {
            timed = timed.saturating_add(total);
        }
    }
    timed
}

/// Returns the CPU time of a thread's outermost scopes, each of which encloses that of the scopes inside it.
fn outermost_cpu(node: &Node, now: u64) -> u64 {
    let cpu = |child: &Node| match child.is_timed() {
        true => child.numbers(now).cpu,
        false => outermost_cpu(child, now),
    };
    node.children().map(cpu).sum()
}

fn add(record: &mut Record, numbers: &Numbers, total: u64, inner: u64) {
    let calls: u64 = numbers.histogram.iter().sum();
    if calls > 0 {
        let min = Duration::from_nanos(numbers.min);
        record.min = if record.calls == 0 {
            min
        } else {
            record.min.min(min)
        };
        record.max = record.max.max(Duration::from_nanos(numbers.max));
    }
    record.calls = record.calls.saturating_add(calls);
    record.total += Duration::from_nanos(total);
    record.own += Duration::from_nanos(total.saturating_sub(inner));
    *record.cpu.get_or_insert_default() += Duration::from_nanos(numbers.cpu);
    if let Some(so_far) = numbers.running {
        record.running += 1;
        record.running_time += Duration::from_nanos(so_far);
    }
    let used = numbers
        .histogram
        .iter()
        .rposition(|&calls| calls > 0)
        .map_or(0, |last| last + 1);
    if record.histogram.len() < used {
        record.histogram.resize(used, 0);
    }
    for (sum, calls) in record.histogram.iter_mut().zip(&numbers.histogram) {
        *sum = sum.saturating_add(*calls);
    }
}

/// Tells apart that nothing was used from that nothing was measured.
fn remove_cpu(records: &mut [Record]) {
    for record in records {
        record.cpu = None;
        remove_cpu(&mut record.children);
    }
}

/// Removes paths without calls, as a reset leaves them, and puts the longest total first.
fn prune_and_sort(records: &mut Vec<Record>) {
    for record in records.iter_mut() {
        prune_and_sort(&mut record.children);
    }
    records.retain(|record| record.calls > 0 || record.running > 0 || !record.children.is_empty());
    records.sort_by(|one, other| {
        other
            .total
            .cmp(&one.total)
            .then_with(|| one.name.cmp(&other.name))
    });
}
