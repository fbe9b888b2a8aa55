//! Warnings about a profile, and what helps.

use super::options::Unwind;
use super::stacks::Flaw;
use super::threads::Recorded;
use crate::remedy::{ProfileRemedy, Remedy};

/// With fewer samples the shares are hardly more than guesses.
const FEW_SAMPLES: u64 = 30;
/// From this share of the time on, stacks with a flaw are reported.
const MANY_FLAWED: f64 = 0.1;
/// Below this share of the time on processors the samples are no picture of it.
const LITTLE_SAMPLED: f64 = 0.5;

/// One sentence, and what helps, if anything does.
#[derive(Debug)]
pub(super) struct Advised {
    pub(super) text: String,
    pub(super) remedy: Option<Remedy>,
}

/// What was asked for, as far as it raises warnings.
#[derive(Debug)]
pub(super) struct Asked {
    /// Whether threads on processors were sampled.
    pub(super) is_sampled: bool,
    /// Whether that was done in the kernel as well.
    pub(super) has_kernel: bool,
    /// How callers were found.
    pub(super) unwind: Unwind,
}

impl Asked {
    /// Returns the warnings about a recording.
    pub(super) fn of(&self, recorded: &Recorded) -> Vec<Advised> {
        let mut found: Vec<Advised> = self.lost(recorded).into_iter().collect();
        found.extend(self.sampled(recorded));
        let stacks = [&recorded.on_cpu, &recorded.off_cpu];
        let all: f64 = stacks.iter().map(|stacks| stacks.seconds()).sum();
        for (flaw, what, remedy) in [
            (
                Flaw::Cut,
                "stacks that are cut short, of code that is built without frame pointers",
                Remedy::Profile(ProfileRemedy::UnwindWithDwarf),
            ),
            (
                Flaw::Unnamed,
                "code that was compiled at run time, which has no names for perf",
                Remedy::Profile(ProfileRemedy::NameCompiledCode),
            ),
            (
                Flaw::Interpreted,
                "Python, whose functions are no frames for perf",
                Remedy::Profile(ProfileRemedy::ShowPythonFrames),
            ),
        ] {
            let flawed: f64 = stacks
                .iter()
                .map(|stacks| stacks.flawed_seconds(flaw))
                .sum();
            let has_advice = flaw != Flaw::Cut || self.unwind == Unwind::FramePointers;
            if flawed / all > MANY_FLAWED && has_advice {
                let percent = flawed / all * 100.0;
                found.push(Advised {
                    text: format!("{percent:.0} % of the time is in {what}"),
                    remedy: Some(remedy),
                });
            }
        }
        found
    }

    #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
    fn lost(&self, recorded: &Recorded) -> Option<Advised> {
        let is_dwarf = self.unwind == Unwind::Dwarf;
        let (lost, all) = (recorded.lost, recorded.records + recorded.lost);
        let share = 100.0 * lost as f64 / all.max(1) as f64;
        (lost > 0).then(|| Advised {
            text: format!("perf lost {lost} of {all} records ({share:.2} %), and what they tell"),
            remedy: is_dwarf.then_some(Remedy::Profile(ProfileRemedy::UnwindByFramePointers)),
        })
    }

    fn sampled(&self, recorded: &Recorded) -> Option<Advised> {
        let plain = |text: String| Advised { text, remedy: None };
        let (stacks, on_cpu) = (&recorded.on_cpu, recorded.times.on_cpu);
        let sampled = stacks.seconds();
        if !self.is_sampled {
            return None;
        }
        if stacks.count() < FEW_SAMPLES {
            let samples = match stacks.count() {
                0 => "no sample".to_owned(),
                1 => "1 sample".to_owned(),
                count => format!("{count} samples"),
            };
            let there = on_cpu * 1e3;
            return Some(plain(format!(
                "{samples} on the CPU, of {there:.1} ms there: one is taken each millisecond of a thread, so a longer run tells more"
            )));
        }
        if !self.has_kernel {
            return Some(Advised {
                text: "what runs in the kernel is not sampled".to_owned(),
                remedy: Some(Remedy::Profile(ProfileRemedy::AllowPerf)),
            });
        }
        // A thread that ends within the millisecond has none.
        (sampled < on_cpu * LITTLE_SAMPLED && recorded.lost == 0).then(|| {
            plain(format!(
                "the samples show {sampled:.3} s of the {on_cpu:.3} s on the CPU: most threads end before their first sample, after a millisecond"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::script::Frame;
    use super::*;

    /// So many samples of these frames, in a run with so many seconds on the CPU.
    fn recorded(samples: u64, on_cpu: f64, innermost: Frame, outermost: &str) -> Recorded {
        let mut recorded = Recorded::default();
        let frames = [innermost, Frame::of(outermost, "program")];
        for _ in 0..samples {
            recorded.on_cpu.add("x", &frames, 1_000_000);
        }
        recorded.times.on_cpu = on_cpu;
        recorded.records = samples;
        recorded
    }

    fn spinning(samples: u64, on_cpu: f64, outermost: &str) -> Recorded {
        recorded(samples, on_cpu, Frame::of("spin", "program"), outermost)
    }

    fn warnings(recorded: &Recorded) -> Vec<String> {
        let asked = Asked {
            is_sampled: true,
            has_kernel: true,
            unwind: Unwind::FramePointers,
        };
        let found = asked.of(recorded).into_iter();
        found.map(|warning| warning.text).collect()
    }

    #[test]
    fn a_good_recording_raises_none() {
        assert_eq!(warnings(&spinning(100, 0.1, "_start")), [""; 0]);
    }

    #[test]
    fn each_warning_is_raised() {
        let in_module = |module| recorded(100, 0.1, Frame::of("", module), "_start");
        let mut lossy = spinning(100, 0.4, "_start");
        lossy.lost = 25;
        for (recorded, text) in [
            (
                spinning(0, 0.003, "_start"),
                "no sample on the CPU, of 3.0 ms there",
            ),
            (spinning(2, 0.003, "_start"), "2 samples on the CPU"),
            (
                spinning(100, 0.4, "_start"),
                "the samples show 0.100 s of the 0.400 s",
            ),
            (
                spinning(100, 0.1, "main"),
                "100 % of the time is in stacks that are cut short",
            ),
            (
                in_module("perf-7.map"),
                "100 % of the time is in code that was compiled at run time",
            ),
            (in_module("python3.11"), "100 % of the time is in Python"),
            (lossy, "perf lost 25 of 125 records (20.00 %)"),
        ] {
            let warnings = warnings(&recorded);
            assert!(
                warnings.len() == 1 && warnings[0].contains(text),
                "{warnings:?}"
            );
        }
    }
}
