//! What blocked threads were waiting in: the system call, and the function of the program that made it.
//!
//! The innermost function of a blocked thread is always the scheduler's, and that of the program always the C library's:
//! neither tells anything. So a place is the entry into the kernel, and the function that called the C library.
//!
//! Frame pointers do not tell which one that is: most C libraries are built without them, so that at best the first frame
//! above is that of the caller's caller, and at worst of nothing that was ever called. Then only a function that entered the
//! kernel itself is named.

use std::collections::HashMap;

use super::options::Unwind;
use super::script::Frame;
use super::stacks::seconds;

/// Beginnings of the names of functions by which system calls enter the kernel. Where the first of them ends with a call of
/// the next, only that one leaves a frame.
const ENTRIES: [&str; 9] = [
    "__x64_sys_",
    "__arm64_sys_",
    "__ia32_sys_",
    "__riscv_sys_",
    "__se_sys_",
    "__do_sys_",
    "ksys_",
    "do_sys_",
    "kernel_",
];
/// Parts of the names of functions that handle a page that is not in memory.
const FAULTS: [&str; 3] = ["page_fault", "do_mem_abort", "handle_mm_fault"];
/// Beginnings of the names of modules that only pass a call on.
const LIBRARIES: [&str; 6] = ["libc.", "libc-", "ld-", "libpthread", "ld.so", "[vdso]"];

/// A place where threads were blocked.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Place {
    /// The system call, or `page fault`.
    pub call: String,
    /// The function that made it; empty if it is not known.
    pub caller: String,
    /// How often.
    pub times: u64,
    /// How long, all together.
    pub seconds: f64,
}

/// Time by place.
#[derive(Debug, Clone, Default)]
pub(super) struct Places {
    /// How often, and nanoseconds.
    times: HashMap<(String, String), (u64, u64)>,
    /// How the stacks are found.
    pub(super) unwind: Unwind,
}

impl Places {
    /// Adds nanoseconds to the place of a stack, the innermost frame first.
    pub(super) fn add(&mut self, frames: &[Frame], nanoseconds: u64) {
        let place = (call(frames), caller(frames, self.unwind));
        let (times, sum) = self.times.entry(place).or_default();
        *times += 1;
        *sum += nanoseconds;
    }

    /// Returns the places, the one with the most time first.
    pub(super) fn sorted(self) -> Vec<Place> {
        let place = |((call, caller), (times, nanoseconds))| Place {
            call,
            caller,
            times,
            seconds: seconds(nanoseconds),
        };
        let mut places: Vec<Place> = self.times.into_iter().map(place).collect();
        places.sort_by(|a, b| {
            let names = (&a.call, &a.caller).cmp(&(&b.call, &b.caller));
            b.seconds.total_cmp(&a.seconds).then(names)
        });
        places
    }
}

fn call(frames: &[Frame]) -> String {
    let kernel = frames.iter().rev().filter(|frame| frame.is_kernel);
    let mut names = kernel.map(|frame| frame.function.as_str());
    let entry = names.clone().find_map(|name| {
        let call = ENTRIES.iter().find_map(|entry| name.strip_prefix(entry));
        let is_fault = FAULTS.iter().any(|fault| name.contains(fault));
        call.or(is_fault.then_some("page fault"))
    });
    // Without a name it is at least known what it went through first.
    let is_first = |name: &&str| !name.starts_with("entry_") && !name.starts_with("do_syscall");
    let found = entry.or_else(|| names.find(is_first));
    found.unwrap_or_default().to_owned()
}

fn caller(frames: &[Frame], unwind: Unwind) -> String {
    let is_passing = |frame: &&Frame| LIBRARIES.iter().any(|name| frame.module.starts_with(name));
    let mut own = frames.iter().filter(|frame| !frame.is_kernel);
    let caller = match unwind {
        Unwind::Dwarf => own.find(|frame| !frame.function.is_empty() && !is_passing(frame)),
        // The address of the function that entered the kernel is exact, whatever stands above it.
        Unwind::FramePointers => own.next().filter(|frame| !is_passing(frame)),
    };
    caller
        .map(|frame| frame.function.clone())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(names: &[(&str, &str)]) -> Vec<Frame> {
        let frames = names.iter();
        frames
            .map(|(function, module)| Frame::of(function, module))
            .collect()
    }

    #[test]
    fn a_place_is_a_system_call_and_who_made_it() {
        let mut places = Places {
            unwind: Unwind::Dwarf,
            ..Places::default()
        };
        let read = frames(&[
            ("__schedule", ""),
            ("ksys_read", ""),
            ("__x64_sys_read", ""),
            ("do_syscall_64", ""),
            ("read", "libc.so.6"),
            ("fetch", "program"),
            ("main", "program"),
        ]);
        let fault = [
            ("io_schedule", ""),
            ("exc_page_fault", ""),
            ("asm_exc_page_fault", ""),
        ];
        places.add(&read, 2_000_000_000);
        places.add(&read, 1_000_000_000);
        places.add(&frames(&fault), 500_000_000);
        places.add(&frames(&[("nanosleep", "libc.so.6")]), 1);
        let found = places.sorted();
        let found = found
            .iter()
            .map(|one| (&*one.call, &*one.caller, one.times, one.seconds));
        let expected = [
            ("read", "fetch", 2, 3.0),
            ("page fault", "", 1, 0.5),
            ("", "", 1, 1e-9),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn frame_pointers_name_no_caller_of_the_library() {
        let by = |rest: &[(&str, &str)]| {
            let entry = [("__x64_sys_read", ""), ("do_syscall_64", "")];
            let mut places = Places::default();
            places.add(&frames(&[&entry[..], rest].concat()), 1);
            places.sorted()[0].caller.clone()
        };
        // `fetch` called `read`, and has lost its frame.
        assert_eq!(by(&[("read", "libc.so.6"), ("main", "program")]), "");
        assert_eq!(by(&[("", "program"), ("main", "program")]), "");
        assert_eq!(
            by(&[("Syscall6", "program"), ("main", "program")]),
            "Syscall6"
        );
        assert_eq!(by(&[]), "");
    }
}
