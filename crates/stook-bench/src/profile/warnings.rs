//! What makes a profile doubtful, in words that say what to do about it.

use super::options::Unwind;
use super::stacks::Stacks;
use super::threads::Recorded;

/// With fewer samples the shares are hardly more than guesses.
const FEW_SAMPLES: u64 = 30;
/// From this share on stacks that have lost their outer frames are told.
const MANY_CUT: f64 = 0.1;
/// Below this share of the time on processors the samples are no picture of it.
const LITTLE_SAMPLED: f64 = 0.5;

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
    /// Returns what is doubtful about a recording, one sentence each.
    pub(super) fn of(&self, recorded: &Recorded) -> Vec<String> {
        let found = [
            self.lost(recorded),
            self.sampled(recorded),
            self.cut(recorded),
            unnamed(recorded),
            interpreted(recorded),
        ];
        found.into_iter().flatten().collect()
    }

    fn lost(&self, recorded: &Recorded) -> Option<String> {
        let advice = match self.unwind {
            Unwind::Dwarf => "; without `--dwarf` it loses fewer",
            Unwind::FramePointers => "",
        };
        let (lost, all) = (recorded.lost, recorded.records + recorded.lost);
        #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
        let share = 100.0 * lost as f64 / all.max(1) as f64;
        (lost > 0).then(|| {
            format!("perf lost {lost} of {all} records ({share:.2} %), and what they tell{advice}")
        })
    }

    fn sampled(&self, recorded: &Recorded) -> Option<String> {
        let (stacks, on_cpu) = (&recorded.on_cpu, recorded.times.on_cpu);
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
            return Some(format!(
                "{samples} on the CPU, of {there:.1} ms there: one is taken each millisecond of a thread, so a longer run tells more"
            ));
        }
        if !self.has_kernel {
            return Some("what runs in the kernel is not sampled: `sysctl kernel.perf_event_paranoid=1` allows it".to_owned());
        }
        // A thread that ends within the millisecond has none.
        (stacks.seconds() < on_cpu * LITTLE_SAMPLED && recorded.lost == 0).then(|| {
            format!(
                "the samples show {:.3} s of the {on_cpu:.3} s on the CPU: most threads end before their first sample, after a millisecond",
                stacks.seconds()
            )
        })
    }

    fn cut(&self, recorded: &Recorded) -> Option<String> {
        let (on_cpu, off_cpu) = (&recorded.on_cpu, &recorded.off_cpu);
        let cut = on_cpu.cut_seconds() + off_cpu.cut_seconds();
        let share = cut / (on_cpu.seconds() + off_cpu.seconds());
        (share > MANY_CUT && self.unwind == Unwind::FramePointers).then(|| {
            format!(
                "{:.0} % of the time is in stacks that are cut short, of code that is built without frame pointers: `--dwarf` shows them whole",
                share * 100.0
            )
        })
    }
}

fn share(recorded: &Recorded, seconds: fn(&Stacks) -> f64) -> f64 {
    let (on_cpu, off_cpu) = (&recorded.on_cpu, &recorded.off_cpu);
    (seconds(on_cpu) + seconds(off_cpu)) / (on_cpu.seconds() + off_cpu.seconds())
}

fn unnamed(recorded: &Recorded) -> Option<String> {
    let share = share(recorded, Stacks::unnamed_seconds);
    (share > MANY_CUT).then(|| {
        format!(
            "{:.0} % of the time is in code that was compiled at run time, which has no names for perf: its compiler can write them to `/tmp/perf-PID.map`, such as `node --perf-basic-prof`, `java -XX:+DumpPerfMapAtExit`, `DOTNET_PerfMapEnabled=1`",
            share * 100.0
        )
    })
}

fn interpreted(recorded: &Recorded) -> Option<String> {
    let share = share(recorded, Stacks::interpreted_seconds);
    (share > MANY_CUT).then(|| {
        format!(
            "{:.0} % of the time is in Python, whose functions are no frames for perf: `python3 -X perf` (3.12 or later) shows them, and `--lines` the lines of one",
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::script::Frame;
    use super::*;

    fn recorded(samples: u64, on_cpu: f64, outermost: &str) -> Recorded {
        let mut recorded = Recorded::default();
        let frame = |function: &str| Frame {
            function: function.to_owned(),
            module: "program".to_owned(),
            is_kernel: false,
        };
        for _ in 0..samples {
            recorded
                .on_cpu
                .add("x", &[frame("spin"), frame(outermost)], 1_000_000);
        }
        recorded.times.on_cpu = on_cpu;
        recorded.records = samples;
        recorded
    }

    fn warnings(recorded: &Recorded) -> Vec<String> {
        let asked = Asked {
            is_sampled: true,
            has_kernel: true,
            unwind: Unwind::FramePointers,
        };
        asked.of(recorded)
    }

    #[test]
    fn a_good_recording_raises_none() {
        assert_eq!(warnings(&recorded(100, 0.1, "_start")), [""; 0]);
    }

    #[test]
    fn each_warning_is_raised() {
        let told = |recorded: &Recorded, text: &str| {
            let warnings = warnings(recorded);
            assert!(
                warnings.len() == 1 && warnings[0].contains(text),
                "{warnings:?}"
            );
        };
        told(
            &recorded(0, 0.003, "_start"),
            "no sample on the CPU, of 3.0 ms there",
        );
        told(&recorded(2, 0.003, "_start"), "2 samples on the CPU");
        told(
            &recorded(100, 0.4, "_start"),
            "the samples show 0.100 s of the 0.400 s",
        );
        told(
            &recorded(100, 0.1, "memmove"),
            "100 % of the time is in stacks that are cut short",
        );
        let of_module = |module: &str| {
            let mut recorded = recorded(0, 0.1, "_start");
            let frame = |function: &str, module: &str| Frame {
                function: function.to_owned(),
                module: module.to_owned(),
                is_kernel: false,
            };
            for _ in 0..100 {
                let frames = [frame("", module), frame("_start", "program")];
                recorded.on_cpu.add("x", &frames, 1_000_000);
            }
            recorded
        };
        told(
            &of_module("perf-7.map"),
            "100 % of the time is in code that was compiled at run time",
        );
        told(&of_module("python3.11"), "100 % of the time is in Python");
        let mut lossy = recorded(100, 0.4, "_start");
        lossy.lost = 25;
        told(&lossy, "perf lost 25 of 125 records (20.00 %)");
    }
}
