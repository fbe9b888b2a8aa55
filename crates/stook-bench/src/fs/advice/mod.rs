//! What the figures say, in words; nothing where they do not carry it.
//!
//! A ratio is reported if the lower end of its interval of 95 % passes the mark, so neither two overlapping series
//! nor a single lucky run lead to advice.

use super::figures::{DROPPED, Figures};
use super::phase::{Phase, Tool};
use crate::cases::Case;
use crate::numbers::duration;
use crate::record::Sample;
use crate::remedy::Remedy;
use crate::warnings::{TOO_SHORT_SECONDS, Warning, of_times};

/// Fewer rounds than this say nothing about how sure a figure is.
const LEAST_ROUNDS: u32 = 3;
/// Unpacking is to be avoided where it takes this many times as long as reading in place.
const UNPACKING_HURTS: f64 = 20.0;
/// A target is slow if it takes this many times as long as the fastest one.
const SLOW: f64 = 5.0;
/// From this share on, a tool is waiting rather than working.
const MOSTLY_BLOCKED: f64 = 0.8;
/// More workers are worth it from this gain on.
const WORTH_IT: f64 = 1.5;
/// More workers gain nothing if they are at most this many times as fast.
const NO_GAIN: f64 = 1.1;
/// A tail is long if one operation in a hundred takes this many medians,
const LONG_TAIL: u64 = 20;
/// and at least so many nanoseconds, as what is shorter nobody feels,
const FELT: u64 = 1_000_000;
/// and if there are so many of them that ten lie beyond.
const ENOUGH_OPERATIONS: u64 = 1_000;

/// What a piece of advice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// Unpacking costs much more than reading in place.
    KeepTarred,
    /// One target is much slower than another one.
    SlowTarget,
    /// The system's tools wait, and more workers help.
    MoreWorkers,
    /// All wait, and more workers do not help.
    StorageLimit,
    /// Some operations take much longer than most.
    LongTail,
    /// Figures that say little.
    Warning,
}

/// One sentence about a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The target, by its label.
    pub target: String,
    /// What it is about.
    pub concern: Concern,
    /// The sentence, without its end.
    pub text: String,
    /// What would make doubtful figures say more.
    pub remedy: Option<Remedy>,
}

impl Advice {
    fn of(target: &str, concern: Concern, text: String) -> Self {
        Self {
            target: target.to_owned(),
            concern,
            text,
            remedy: None,
        }
    }
}

/// Returns what the samples of `stook bench fs` say, the warnings last.
pub fn advise(samples: &[Sample]) -> Vec<Advice> {
    let figures = Figures::of(samples);
    let mut all = Vec::new();
    for target in &figures.targets {
        let mut say = |concern, text| all.push(Advice::of(target, concern, text));
        if figures.cases.rounds >= LEAST_ROUNDS {
            if let Some(text) = keep_tarred(&figures, target) {
                say(Concern::KeepTarred, text);
            }
            slow_target(&figures, target, &mut |text| say(Concern::SlowTarget, text));
            workers(&figures, target, &mut say);
        }
        if let Some(text) = long_tail(&figures, target) {
            say(Concern::LongTail, text);
        }
        all.extend(warnings(&figures, target));
    }
    all.sort_by_key(|advice| advice.concern == Concern::Warning);
    all
}

/// Two digits, as more would not be true.
fn times(ratio: f64) -> String {
    if ratio < 9.95 {
        format!("{ratio:.1} x")
    } else {
        format!("{ratio:.0} x")
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// Unpacking with tar, or with stook if tar was not measured, against reading the same bytes where they lie.
fn keep_tarred(figures: &Figures<'_>, target: &str) -> Option<String> {
    let of = |phase: Phase, tool: Tool| figures.case(target, phase.name(), tool.name());
    let read = of(Phase::Read, Tool::Stook)?;
    let [system, stook] = [Tool::System, Tool::Stook].map(|tool| of(Phase::Untar, tool));
    let with_stook = system.and(stook).and_then(|stook| stook.ratio_to(read));
    let with_stook = with_stook.map_or_else(String::new, |with_stook| {
        format!(" ({} with stook)", times(with_stook.value))
    });
    let unpacking = system.or(stook)?.ratio_to(read)?;
    let factor = times(unpacking.value);
    (unpacking.low >= UNPACKING_HURTS).then(|| {
        format!(
            "on `{target}`, unpacking costs {factor} more than reading the archive in place{with_stook}: keep this data set tarred"
        )
    })
}

/// What is compared between targets, in words, and what follows.
const WORK: [(Phase, &str, &str); 4] = [
    (Phase::Untar, "unpacking", "unpack where it is fast"),
    (
        Phase::Stat,
        "stat of all files",
        "programs that compare trees, such as backups, feel this most",
    ),
    (
        Phase::Read,
        "reading all files",
        "programs that open many small files feel this most",
    ),
    (
        Phase::Delete,
        "removing the tree",
        "keep temporary files where it is fast",
    ),
];

/// Compares with the target that is most surely faster at the same phase with the system's tools.
fn slow_target(figures: &Figures<'_>, target: &str, say: &mut dyn FnMut(String)) {
    for (phase, work, advice) in WORK {
        let of = |target: &str| figures.case(target, phase.name(), Tool::System.name());
        let Some(own) = of(target) else { continue };
        let others = figures.targets.iter().filter(|other| *other != target);
        let ratios = others.filter_map(|other| Some((other, own.ratio_to(of(other)?)?)));
        let surest = ratios.max_by(|a, b| a.1.low.total_cmp(&b.1.low));
        if let Some((other, ratio)) = surest
            && ratio.low >= SLOW
        {
            let factor = times(ratio.value);
            say(format!(
                "on `{target}`, {work} takes {factor} as long as on `{other}`: {advice}"
            ));
        }
    }
}

/// What does the work of phases in which workers can help. Not of reading, which stook does elsewhere.
const PROGRAMS: [(Phase, &str); 6] = [
    (Phase::Untar, "tar"),
    (Phase::Find, "find"),
    (Phase::Stat, "find"),
    (Phase::Tar, "tar"),
    (Phase::CopyTree, "cp"),
    (Phase::Delete, "rm"),
];

/// Where the system's tools wait: whether the many workers of stook wait less.
fn workers(figures: &Figures<'_>, target: &str, say: &mut dyn FnMut(Concern, String)) {
    let (mut helped, mut stuck) = (Vec::new(), Vec::new());
    for (phase, program) in PROGRAMS {
        let of = |tool: Tool| figures.case(target, phase.name(), tool.name());
        let Some((system, stook)) = of(Tool::System).zip(of(Tool::Stook)) else {
            continue;
        };
        let both = blocked_share(system).zip(system.ratio_to(stook));
        let Some((blocked, ratio)) = both.filter(|(blocked, _)| *blocked >= MOSTLY_BLOCKED) else {
            continue;
        };
        let (name, share, factor) = (phase.name(), percent(blocked), times(ratio.value));
        let is_stuck = || blocked_share(stook).is_some_and(|share| share >= MOSTLY_BLOCKED);
        if ratio.low >= WORTH_IT {
            helped.push(format!(
                "{name} is blocked {share} of the time, and stook is {factor} faster than {program}"
            ));
        } else if ratio.high <= NO_GAIN && phase != Phase::Tar && is_stuck() {
            // Nor if packing: stook waits there until all is on the disk.
            stuck.push(format!("{name} ({share} blocked)"));
        }
    }
    let sentences = [
        (Concern::MoreWorkers, "more workers help", helped),
        (
            Concern::StorageLimit,
            "all tools wait, and more workers do not help",
            stuck,
        ),
    ];
    for (concern, what, phases) in sentences {
        if !phases.is_empty() {
            say(
                concern,
                format!("on `{target}`, {what}: {}", phases.join("; ")),
            );
        }
    }
}

/// The share of the time, at least, in which a tool was blocked, and did not wait for a processor.
fn blocked_share(case: &Case<'_>) -> Option<f64> {
    case.shares()?.blocked()
}

/// Tells of the longest tail. Reads and writes are left out: they differ in length.
fn long_tail(figures: &Figures<'_>, target: &str) -> Option<String> {
    let mut longest: Option<(u64, String)> = None;
    for phase in &figures.phases {
        let case = figures.case(target, phase, Tool::Single.name());
        for (name, _, latencies) in case.into_iter().flat_map(Case::operations) {
            let (half, most) = (latencies.quantile(0.5), latencies.quantile(0.99));
            let times = most / half.max(1);
            let is_long = most >= FELT && times >= LONG_TAIL;
            let is_sure =
                latencies.count() >= ENOUGH_OPERATIONS && !["read", "write"].contains(&name);
            if is_long && is_sure && longest.as_ref().is_none_or(|(known, _)| times > *known) {
                let (most, half) = (duration(most), duration(half));
                longest = Some((
                    times,
                    format!(
                        "on `{target}`, one `{name}` of {phase} in a hundred takes {most} or more, and half of them {half} or \
                     less: something else is in the way now and then"
                    ),
                ));
            }
        }
    }
    longest.map(|(_, text)| text)
}

fn warnings(figures: &Figures<'_>, target: &str) -> Vec<Advice> {
    let has =
        |case: &Case<'_>, is_it: fn(&Warning) -> bool| of_times(&case.seconds()).iter().any(is_it);
    let short = |case: &Case<'_>| has(case, |warning| matches!(warning, Warning::TooShort(_)));
    let wide =
        |case: &Case<'_>| !short(case) && has(case, |warning| matches!(warning, Warning::Wide(_)));
    let reads = figures.case(target, Phase::Read.name(), Tool::Stook.name());
    let is_warm = keep_tarred(figures, target).is_some() && !reads.is_some_and(is_cold);
    let from_memory = "the archive was read after it was copied there, so perhaps from memory";
    let limit = TOO_SHORT_SECONDS * 1000.0;
    let listed =
        |what: String, which: Option<String>| which.map(|which| format!("{what}: {which}"));
    let all = [
        (is_warm.then(|| from_memory.to_owned()), Remedy::DropCaches),
        (
            listed(
                format!("these took less than {limit:.0} ms, too short to judge"),
                which(figures, target, &short),
            ),
            Remedy::MeasureMoreFiles,
        ),
        (
            listed(
                "the times of rounds differ by more than a fifth".to_owned(),
                which(figures, target, &wide),
            ),
            Remedy::MeasureMoreRounds,
        ),
    ];
    let found = all.into_iter().filter_map(|(what, remedy)| {
        let text = format!("on `{target}`, {}", what?);
        Some(Advice {
            remedy: Some(remedy),
            ..Advice::of(target, Concern::Warning, text)
        })
    });
    found.collect()
}

/// Whether the caches were dropped before each run.
fn is_cold(case: &Case<'_>) -> bool {
    case.proofs(DROPPED)
        .filter(|dropped| **dropped == true)
        .count()
        == case.samples.len()
}

/// Names the groups that something holds of; a phase alone if it holds with all tools.
fn which(figures: &Figures<'_>, target: &str, holds: &dyn Fn(&Case<'_>) -> bool) -> Option<String> {
    let mut names = Vec::new();
    for phase in &figures.phases {
        let of = |tool: &&String| figures.case(target, phase, tool);
        let tools = figures.tools.iter().filter(|tool| of(tool).is_some());
        let all = tools.clone().count();
        let tools = tools.filter(|tool| of(tool).is_some_and(holds));
        let tools: Vec<&str> = tools.map(String::as_str).collect();
        match tools.as_slice() {
            [] => {}
            tools if tools.len() == all => names.push(phase.clone()),
            tools => names.push(format!("{phase} with {}", tools.join(" and "))),
        }
    }
    (!names.is_empty()).then(|| names.join(", "))
}

#[cfg(test)]
mod tests;
