//! Stacks and the time that was spent in each of them: folded lines for flame graphs, and figures of functions.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::script::Frame;

/// Marks frames of the kernel in folded stacks, as other programs for flame graphs know it.
const KERNEL_MARK: &str = "_[k]";

/// Where stacks begin: the outermost function of a program or of one of its threads, or beginnings of its name.
const OUTERMOST: [&str; 9] = [
    "_start",
    "__libc_start",
    "_dl_",
    "__GI___clone",
    "clone",
    "__clone",
    "start_thread",
    "runtime.",
    "__restore_rt",
];

/// Time by stack.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    /// Nanoseconds by folded stack, the outermost frame first.
    times: HashMap<String, u64>,
    /// Periods of time that were added.
    count: u64,
    /// Time of all stacks.
    total: u64,
    /// Time of stacks that show less than they could, by [`Flaw`].
    flawed: [u64; 3],
}

/// Why a stack shows less than it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flaw {
    /// It has lost its outer frames.
    Cut,
    /// It has code that was made at run time, without a name.
    Unnamed,
    /// Python interprets functions in it that have no frames.
    Interpreted,
}

/// One function of a profile.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Function {
    /// Its name; `_[k]` marks those of the kernel.
    pub function: String,
    /// Seconds in it, without what it called.
    pub self_seconds: f64,
    /// Seconds in it and in what it called.
    pub total_seconds: f64,
}

impl Stacks {
    /// Adds nanoseconds to the stack of a thread with this name; the innermost frame comes first.
    pub(super) fn add(&mut self, thread: &str, frames: &[Frame], nanoseconds: u64) {
        // Where unwinding lost its way, the last addresses are none.
        let known = frames.iter().rposition(Frame::is_known);
        let known = &frames[..known.map_or(0, |last| last + 1)];
        let outermost = known.last().filter(|frame| !frame.is_kernel);
        let flaws = [
            (
                Flaw::Cut,
                outermost.is_some_and(|frame| !frame.is_outermost()),
            ),
            (Flaw::Unnamed, frames.iter().any(Frame::is_made_at_run_time)),
            (Flaw::Interpreted, is_interpreted(frames)),
        ];
        for (flaw, _) in flaws.iter().filter(|(_, is_there)| *is_there) {
            self.flawed[*flaw as usize] += nanoseconds;
        }
        let mut stack = plain(thread);
        for frame in known.iter().rev() {
            stack.push(';');
            stack.push_str(&frame.text());
        }
        *self.times.entry(stack).or_default() += nanoseconds;
        self.count += 1;
        self.total += nanoseconds;
    }

    /// Returns how many samples, or periods of time, there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Returns the seconds of all stacks.
    pub fn seconds(&self) -> f64 {
        seconds(self.total)
    }

    /// Returns the seconds in stacks that do not reach out to where a thread begins.
    pub fn cut_seconds(&self) -> f64 {
        self.flawed_seconds(Flaw::Cut)
    }

    /// Returns the seconds in stacks with this flaw.
    pub(super) fn flawed_seconds(&self, flaw: Flaw) -> f64 {
        seconds(self.flawed[flaw as usize])
    }

    /// Returns the folded stacks with their microseconds, one a line, in the order of their text.
    pub fn folded(&self) -> String {
        let sorted: BTreeMap<&String, &u64> = self.times.iter().collect();
        let rounded = sorted
            .into_iter()
            .map(|(stack, time)| (stack, (time + 500) / 1000));
        let shown = rounded.filter(|(_, time)| *time > 0);
        shown
            .map(|(stack, time)| format!("{stack} {time}\n"))
            .collect()
    }

    /// Returns the functions, the one with the most time of its own first.
    pub fn functions(&self) -> Vec<Function> {
        let mut figures: HashMap<&str, (u64, u64)> = HashMap::new();
        for (stack, &time) in &self.times {
            let mut frames = stack.split(';');
            // The name of the thread is no function.
            let thread = frames.next().unwrap_or_default();
            let innermost = frames.clone().next_back().unwrap_or(thread);
            figures.entry(innermost).or_default().0 += time;
            // A function that calls itself is counted once.
            for function in frames.collect::<BTreeSet<_>>() {
                figures.entry(function).or_default().1 += time;
            }
        }
        let function = |(name, (own, total)): (&str, (u64, u64))| Function {
            function: name.to_owned(),
            self_seconds: seconds(own),
            total_seconds: seconds(total.max(own)),
        };
        let mut functions: Vec<Function> = figures.into_iter().map(function).collect();
        functions.sort_by(|a, b| {
            let by_own = b.self_seconds.total_cmp(&a.self_seconds);
            let by_time = by_own.then(b.total_seconds.total_cmp(&a.total_seconds));
            by_time.then_with(|| a.function.cmp(&b.function))
        });
        functions
    }
}

impl Frame {
    fn is_known(&self) -> bool {
        self.is_kernel || !self.function.is_empty() || !self.module.is_empty()
    }

    /// Whether it is without a name, in memory that no file stands behind. perf takes such memory for that of a compiler
    /// which writes the names into `/tmp/perf-PID.map`.
    fn is_made_at_run_time(&self) -> bool {
        let module = self.module.as_str();
        let is_map = module.starts_with("perf-") && module.ends_with(".map");
        let is_anonymous = ["anon", "[anon", "memfd:", "[JIT]"];
        let is_anonymous = is_anonymous.iter().any(|name| module.starts_with(name));
        !self.is_kernel && self.function.is_empty() && (is_map || is_anonymous)
    }

    fn is_outermost(&self) -> bool {
        OUTERMOST.iter().any(|name| self.function.starts_with(name))
    }

    /// The frame in a folded stack.
    fn text(&self) -> String {
        let name = match (self.function.as_str(), self.module.as_str()) {
            ("", "") => "[unknown]".to_owned(),
            ("", module) if module.starts_with('[') => module.to_owned(),
            ("", module) => format!("[{module}]"),
            (function, _) => function.to_owned(),
        };
        let mark = if self.is_kernel { KERNEL_MARK } else { "" };
        plain(&name) + mark
    }
}

/// Whether it is a stack of Python without its functions, which `-X perf` shows as `py::name`.
fn is_interpreted(frames: &[Frame]) -> bool {
    let is_python = |frame: &Frame| {
        let module = frame.module.as_str();
        module.starts_with("python3") || module.starts_with("libpython3")
    };
    let mut functions = frames.iter().map(|frame| &frame.function);
    frames.iter().any(is_python) && !functions.any(|function| function.starts_with("py::"))
}

/// A name without what parts frames and lines, or may not stand in a picture.
fn plain(name: &str) -> String {
    let name = name.replace(';', ":");
    match name.contains(char::is_control) {
        true => stook_sys::display_bytes(name.as_bytes()),
        false => name,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as exact as a figure can be read"
)]
pub(super) fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack; `k` marks the kernel, and no name that nothing is known.
    fn frames(names: &[&str]) -> Vec<Frame> {
        let frame = |name: &&str| match (name.strip_prefix('k'), *name) {
            (Some(name), _) => Frame::of(name, ""),
            (None, "") => Frame::of("", ""),
            (None, name) => Frame::of(name, "libc.so"),
        };
        names.iter().map(frame).collect()
    }

    #[test]
    fn stacks_are_folded_with_their_microseconds() {
        let mut stacks = Stacks::default();
        let main = frames(&["kread", "fetch", "main", "_start"]);
        stacks.add("a;b", &main, 1_000_000);
        stacks.add("a;b", &main, 2_000_000);
        stacks.add("a;b", &frames(&["spin", "_start"]), 500);
        stacks.add("a;b", &frames(&["tiny", "_start"]), 1);
        let folded = "a:b;_start;main;fetch;read_[k] 3000\na:b;_start;spin 1\n";
        assert_eq!(stacks.folded(), folded);
        assert_eq!((stacks.count(), stacks.seconds()), (4, 0.003_000_501));
        assert!(stacks.cut_seconds() < 1e-12);
    }

    #[test]
    fn odd_names_stay_one_line_and_one_picture() {
        let mut stacks = Stacks::default();
        stacks.add("a;\n\x1b[31m", &frames(&["\u{1}f", "_start"]), 2000);
        assert_eq!(stacks.folded(), "a:\\n\\x1b[31m;_start;\\x01f 2\n");
    }

    #[test]
    fn stacks_that_lost_their_outer_frames_are_known() {
        let mut stacks = Stacks::default();
        stacks.add("a", &frames(&["memmove", "", ""]), 1000);
        stacks.add("a", &frames(&["kfault"]), 3000);
        assert_eq!(stacks.folded(), "a;fault_[k] 3\na;memmove 1\n");
        assert!((stacks.cut_seconds() - 1e-6).abs() < 1e-12);
    }

    #[test]
    fn code_made_at_run_time_and_interpreted_code_are_known() {
        let flaws = |frames: &[Frame]| {
            let mut stacks = Stacks::default();
            stacks.add("t", frames, 1_000_000_000);
            [Flaw::Unnamed, Flaw::Interpreted].map(|flaw| stacks.flawed_seconds(flaw) > 0.5)
        };
        let main = Frame::of("main", "node");
        for module in ["perf-77.map", "anon", "[anon:v8]", "memfd:doublemapper"] {
            let found = flaws(&[Frame::of("", module), main.clone()]);
            assert_eq!(found, [true, false], "{module}");
        }
        for named in [
            Frame::of("LazyCompile:f", "perf-77.map"),
            Frame::of("", "libssl.so"),
        ] {
            assert_eq!(flaws(&[named, main.clone()]), [false, false]);
        }
        let python = Frame::of("_PyEval_EvalFrameDefault", "python3.11");
        assert_eq!(flaws(std::slice::from_ref(&python)), [false, true]);
        let function = Frame::of("py::f:/x.py", "perf-77.map");
        assert_eq!(flaws(&[python, function]), [false, false]);
    }

    #[test]
    fn a_function_that_calls_itself_is_counted_once() {
        let mut stacks = Stacks::default();
        stacks.add("t", &frames(&["f", "f", "g", "_start"]), 2_000_000_000);
        stacks.add("t", &frames(&["g", "_start"]), 500_000_000);
        stacks.add("t", &[], 250_000_000);
        let expected = [
            ("f", 2.0, 2.0),
            ("g", 0.5, 2.5),
            ("t", 0.25, 0.25),
            ("_start", 0.0, 2.5),
        ];
        let functions = stacks.functions().into_iter();
        let found = functions.map(|one| (one.function, one.self_seconds, one.total_seconds));
        let expected = expected.map(|(name, own, total)| (name.to_owned(), own, total));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
