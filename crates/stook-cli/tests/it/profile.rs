//! `stook profile`: where time went that is known beforehand, and what is told where it cannot be found out.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use insta::assert_snapshot;
use serde_json::Value;

use crate::place::{Place, Ran, Signal, json_lines, wait_until};

/// Whether a program can be run.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

/// Returns true, and says so, if threads cannot be followed here.
pub(crate) fn is_skipped() -> bool {
    static WHY: LazyLock<Option<String>> = LazyLock::new(why_not);
    if let Some(why) = &*WHY {
        stook_testkit::skip!("{why}");
    }
    WHY.is_some()
}

fn why_not() -> Option<String> {
    let place = Place::new();
    let ran = place.run(&[
        "profile",
        "--off-cpu",
        "--out",
        "probe",
        "--",
        "sleep",
        "0.01",
    ]);
    (ran.status != Some(0)).then_some(ran.stderr)
}

fn of_type<'a>(lines: &'a [Value], line: &str) -> Vec<&'a Value> {
    lines.iter().filter(|value| value["type"] == line).collect()
}

fn seconds_in(lines: &[Value], call: &str) -> f64 {
    let places = of_type(lines, "place");
    let places = places.iter().filter(|place| place["call"] == call);
    places.map(|place| place["seconds"].as_f64().unwrap()).sum()
}

#[test]
fn sleep_is_blocked_in_its_system_call() {
    if is_skipped() {
        return;
    }
    let place = Place::new();
    let lines = place.json(&[
        "profile",
        "--off-cpu",
        "--out",
        "out",
        "--json",
        "--",
        "sleep",
        "0.2",
    ]);
    let slept = seconds_in(&lines, "clock_nanosleep");
    assert!((0.2..4.0).contains(&slept), "{slept}");
    let times = of_type(&lines, "times")[0];
    assert!(times["blocked"].as_f64().unwrap() >= slept, "{times}");
    assert_eq!(times["threads"], 1);
    let folded = std::fs::read_to_string(place.path("out/off-cpu.folded")).unwrap();
    let line = folded
        .lines()
        .find(|line| line.contains("do_nanosleep_[k]"))
        .unwrap();
    let microseconds: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(
        line.starts_with("sleep;") && microseconds >= 200_000,
        "{line}"
    );
    let drawing = std::fs::read_to_string(place.path("out/off-cpu.svg")).unwrap();
    assert!(drawing.contains("<svg") && drawing.contains("do_nanosleep"));
    assert_eq!(place.names("out"), ["off-cpu.folded", "off-cpu.svg"]);
}

#[test]
fn threads_that_block_on_different_things_are_told_apart() {
    if is_skipped() {
        return;
    }
    let place = Place::new();
    let script = "(sleep 0.3 | cat) & sleep 0.2; wait";
    let lines = place.json(&[
        "profile",
        "--off-cpu",
        "--out",
        "out",
        "--json",
        "--",
        "sh",
        "-c",
        script,
    ]);
    let slept = seconds_in(&lines, "clock_nanosleep");
    assert!((0.5..5.0).contains(&slept), "both sleeps: {slept}");
    assert!(
        seconds_in(&lines, "read") >= 0.29,
        "cat waited for its input"
    );
}

/// A rate of samples that holds for switches as well leaves most of them without a stack.
#[test]
fn every_switch_has_its_stack() {
    if is_skipped() {
        return;
    }
    let place = Place::new();
    // Two shells that hand each other lines, so that they switch all the time.
    let script = "mkfifo a b; i=0
        (while [ $i -lt 3000 ]; do read x; echo 1; i=$((i+1)); done <a >b) &
        exec 3>a 4<b
        while [ $i -lt 3000 ]; do echo 1 >&3; read x <&4; i=$((i+1)); done";
    let lines = place.json(&[
        "profile",
        "--on-cpu",
        "--off-cpu",
        "--json",
        "--out",
        "out",
        "--",
        "sh",
        "-c",
        script,
    ]);
    let times = |place: &&Value| place["times"].as_u64().unwrap();
    let places = of_type(&lines, "place");
    let all: u64 = places.iter().map(times).sum();
    let unknown = places.iter().filter(|place| place["call"] == "").map(times);
    assert!(unknown.sum::<u64>() * 10 < all && all >= 2000, "{places:?}");
    let stacks = of_type(&lines, "stacks");
    assert_eq!(
        (&stacks[0]["view"], &stacks[1]["view"]),
        (&"on-cpu".into(), &"off-cpu".into())
    );
    // What the clock sampled is what the switches say.
    let sampled = stacks[0]["seconds"].as_f64().unwrap();
    let on_cpu = of_type(&lines, "times")[0]["on_cpu"].as_f64().unwrap();
    assert!(
        sampled > on_cpu / 5.0 && sampled < on_cpu * 1.5,
        "{sampled} of {on_cpu}"
    );
}

#[test]
fn system_calls_are_counted_once() {
    if !has("strace") {
        stook_testkit::skip!("strace is not here");
        return;
    }
    let place = Place::new();
    let script = "sleep 0.2 & sleep 0.01 & wait; cat no-such-file; exit 0";
    let lines = place.json(&[
        "profile",
        "--syscalls",
        "--out",
        "out",
        "--json",
        "--",
        "sh",
        "-c",
        script,
    ]);
    let calls = of_type(&lines, "syscall");
    let sum = |names: &[&str], figure: &str| -> f64 {
        let named = calls
            .iter()
            .filter(|call| names.contains(&call["name"].as_str().unwrap()));
        named.map(|call| call[figure].as_f64().unwrap()).sum()
    };
    assert_eq!(sum(&["clock_nanosleep"], "calls"), 2.0, "{calls:?}");
    assert!(sum(&["clock_nanosleep"], "seconds") >= 0.2);
    assert_eq!(
        sum(&["clone", "clone3", "fork", "vfork"], "calls"),
        3.0,
        "{calls:?}"
    );
    assert!(sum(&["openat"], "errors") >= 1.0);
    let order: Vec<f64> = calls
        .iter()
        .map(|call| call["seconds"].as_f64().unwrap())
        .collect();
    assert!(order.is_sorted_by(|a, b| a >= b), "{order:?}");
    let summary = lines.last().unwrap();
    assert_eq!(summary["counted_by"], "strace -f -c -w");
    assert_eq!(place.names("out"), ["syscalls.txt"]);
}

#[test]
fn a_program_that_the_shell_has_built_in_is_counted() {
    if !has("strace") {
        stook_testkit::skip!("strace is not here");
        return;
    }
    let place = Place::new();
    let arguments = [
        "profile",
        "--syscalls",
        "--out",
        "out",
        "--json",
        "--",
        "echo",
        "x",
    ];
    let lines = place.json(&arguments);
    let calls = of_type(&lines, "syscall");
    for name in ["execve", "write"] {
        let is_there = calls.iter().any(|call| call["name"] == name);
        assert!(is_there, "{name}: {calls:?}");
    }
}

#[test]
fn a_recording_that_cannot_be_read_is_no_profile() {
    if is_skipped() {
        return;
    }
    let place = Place::new();
    let path = programs(&place, &["sh", "head", "sleep"]);
    let perf = ["/usr/bin/perf", "/bin/perf"];
    let Some(perf) = perf.iter().find(|perf| Path::new(perf).exists()) else {
        stook_testkit::skip!("perf is elsewhere");
        return;
    };
    let script = format!(
        "#!/bin/sh\n[ $1 = script ] || exec {perf} \"$@\"\n{perf} \"$@\" | head -n 40\necho torn >&2\nexit 3\n"
    );
    let program = place.path("programs/perf");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = place.command(&[
        "profile",
        "--off-cpu",
        "--out",
        "out",
        "--",
        "sleep",
        "0.05",
    ]);
    let ran = Ran::of(command.env("PATH", path).output().unwrap());
    assert_eq!((ran.status, ran.text()), (Some(1), ""));
    let error = "error: `perf script` failed while the recording was read: exit status 3\n  torn\n";
    assert!(ran.stderr.ends_with(error), "{}", ran.stderr);
    assert_eq!(place.names("."), ["programs"]);
}

#[test]
fn a_command_that_fails_is_told_with_its_profile() {
    if is_skipped() {
        return;
    }
    let place = Place::new();
    let ran = place.run(&[
        "profile",
        "--out",
        "out",
        "--",
        "sh",
        "-c",
        "sleep 0.05; echo oops >&2; exit 7",
    ]);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    let error = "error: `sleep 0.05; echo oops >&2; exit 7` failed while it was recorded: exit status 7\n  oops\n";
    assert!(ran.stderr.ends_with(error), "{}", ran.stderr);
    assert!(ran.text().contains("clock_nanosleep"), "{}", ran.text());
    assert!(place.path("out/off-cpu.svg").exists());
    // One that only fails the second time has left something behind.
    let ran = place.run(&["profile", "--out", "out2", "--", "mkdir", "made"]);
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr
            .contains("`--before` clears away what that has left"),
        "{}",
        ran.stderr
    );
    place.stdout(&[
        "profile",
        "--out",
        "out3",
        "--before",
        "rm -r made",
        "--",
        "mkdir",
        "made",
    ]);
}

#[test]
fn what_cannot_be_run_is_refused_and_leaves_nothing() {
    let place = Place::new();
    std::fs::create_dir(place.path("there")).unwrap();
    let cases: [(&[&str], i32, &str); 6] = [
        (
            &["--out", "a", "--", "no-such-program"],
            1,
            "error: cannot run `no-such-program`: no such file or directory\n",
        ),
        (
            &["--out", "a", "--pid", "4194305", "--for", "1s"],
            1,
            "error: there is no process 4194305\n",
        ),
        (
            &["--for", "1s", "--", "true"],
            2,
            "error: the argument `--for <TIME>` cannot be used with",
        ),
        (
            &["--pid", "1", "--for", "soon"],
            2,
            "error: invalid value `soon` for `--for <TIME>`: it is no time such as",
        ),
        (
            &["--lines", "__main__:f", "--", "ls", "-l"],
            2,
            "error: `ls -l` is not a Python program\nhint: `--lines` takes `python3 SCRIPT`, ",
        ),
        (
            &["--lines", "f", "--", "python3", "x.py"],
            2,
            "error: `f` is not MODULE:FUNCTION",
        ),
    ];
    for (arguments, status, error) in cases {
        let ran = place.run(&[&["profile"], arguments].concat());
        assert_eq!(ran.status, Some(status), "{arguments:?}: {}", ran.stderr);
        assert!(
            ran.stderr.starts_with(error),
            "{arguments:?}: {}",
            ran.stderr
        );
        assert_eq!(place.names("."), ["there"], "{arguments:?}");
    }
    if !is_skipped() {
        let ran = place.run(&["profile", "--out", "there", "--", "true"]);
        let error = "error: `there` is there already\nhint: `--out` names a new folder\n";
        assert_eq!((ran.status, ran.stderr.as_str()), (Some(1), error));
    }
}

/// A folder with these programs only, to be the `PATH`.
fn programs(place: &Place, names: &[&str]) -> String {
    let folder = place.path("programs");
    std::fs::create_dir_all(&folder).unwrap();
    for name in names {
        let found = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(name));
        let found = found.iter().find(|path| path.exists()).unwrap();
        std::os::unix::fs::symlink(found, folder.join(name)).unwrap();
    }
    folder.to_str().unwrap().to_owned()
}

#[test]
fn without_perf_what_to_install_is_told() {
    let place = Place::new();
    let path = programs(&place, &["sleep"]);
    let run = |arguments: &[&str]| {
        let mut command =
            place.command(&[&["profile"], arguments, &["--", "sleep", "0.01"]].concat());
        Ran::of(command.env("PATH", &path).output().unwrap())
    };
    for view in [&["--on-cpu"][..], &["--off-cpu"], &[]] {
        let ran = run(view);
        assert_eq!(ran.status, Some(1));
        assert!(
            ran.stderr
                .starts_with("error: `perf` is not installed, which records where"),
            "{}",
            ran.stderr
        );
        assert!(
            ran.stderr.contains("\nhint: install `linux-perf` (Debian)"),
            "{}",
            ran.stderr
        );
    }
    let ran = run(&["--syscalls"]);
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr.contains("\nhint: install `strace`"),
        "{}",
        ran.stderr
    );
    assert_eq!(place.names("."), ["programs"]);
    if !has("strace") {
        stook_testkit::skip!("strace is not here");
        return;
    }
    // strace alone shows what it can, and the rest is told.
    programs(&place, &["strace"]);
    let ran = run(&["--out", "out"]);
    assert_eq!(ran.status, Some(3), "{}", ran.stderr);
    assert!(
        ran.text().contains("system call, by strace -f -c -w"),
        "{}",
        ran.text()
    );
    assert!(
        ran.stderr.contains("warning: `perf` is not installed"),
        "{}",
        ran.stderr
    );
}

#[test]
fn what_a_user_may_not_is_told_with_what_to_set() {
    let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let setting: i32 = setting.map_or(9, |text| text.trim().parse().unwrap());
    if !has("perf") || setting != 2 {
        stook_testkit::skip!("perf is not here, or kernel.perf_event_paranoid is not 2");
        return;
    }
    let place = Place::new();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(place.root(), open).unwrap();
    let ran = place.run_as_nobody(&["profile", "--off-cpu", "--out", "out", "--", "true"]);
    let error = "error: `perf` may not record where threads are blocked: kernel.perf_event_paranoid is 2\n\
                 hint: `sysctl kernel.perf_event_paranoid=1`, or run it as root\n";
    assert_eq!((ran.status, ran.stderr.as_str()), (Some(1), error));
    assert!(!place.path("out").exists());
    // Programs may be sampled, and switches counted without their stacks.
    let ran = place.run_as_nobody(&[
        "profile", "--on-cpu", "--json", "--out", "out", "--", "sleep", "0.1",
    ]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let times = &json_lines(ran.text())[0];
    assert!(times["blocked"].as_f64().unwrap() >= 0.1, "{times}");
}

#[test]
fn a_process_of_another_user_is_refused_with_what_it_takes() {
    if !has("strace") {
        stook_testkit::skip!("strace is not here");
        return;
    }
    let place = Place::new();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(place.root(), open).unwrap();
    let pid = "1";
    let arguments = [
        "profile",
        "--syscalls",
        "--out",
        "out",
        "--pid",
        pid,
        "--for",
        "1s",
    ];
    let ran = place.run_as_nobody(&arguments);
    assert_eq!(ran.status, Some(1), "{}", ran.stderr);
    let error = ran.stderr.lines().find(|line| line.starts_with("error: "));
    let error = error.unwrap_or_default();
    assert!(
        error.starts_with("error: strace cannot watch process 1: strace: attach"),
        "{error}"
    );
    let hint = "\nhint: processes of other users take the rights of the superuser\n";
    assert!(ran.stderr.ends_with(hint), "{}", ran.stderr);
    assert!(!place.path("out").exists());
}

/// Starts a program, lets it begin, and watches it; returns seconds on a processor, blocked, and waiting for a processor.
fn watched(command: &[&str], longest: &str) -> Option<[f64; 3]> {
    if is_skipped() {
        return None;
    }
    let place = Place::new();
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = child.id().to_string();
    let views = ["profile", "--on-cpu", "--off-cpu", "--json", "--out", "out"];
    let process = ["--pid", &pid, "--for", longest];
    let ran = place.run(&[&views[..], &process].concat());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let lines = json_lines(ran.text());
    let times = of_type(&lines, "times")[0];
    Some(["on_cpu", "blocked", "waiting_for_cpu"].map(|name| times[name].as_f64().unwrap()))
}

#[test]
fn a_process_that_spins_is_not_blocked() {
    let spin = ["sh", "-c", "while :; do :; done"];
    let Some([on_cpu, blocked, waiting]) = watched(&spin, "500ms") else {
        return;
    };
    let text = format!("{on_cpu} s on a processor, {blocked} s blocked, {waiting} s waiting");
    assert!(blocked < 0.05, "{text}");
    assert!(
        on_cpu > 0.0 && (0.48..5.0).contains(&(on_cpu + waiting)),
        "{text}"
    );
}

#[test]
fn a_process_that_sleeps_is_blocked() {
    let Some([on_cpu, blocked, waiting]) = watched(&["sleep", "60"], "500ms") else {
        return;
    };
    let text = format!("{on_cpu} s on a processor, {blocked} s blocked, {waiting} s waiting");
    assert!(
        (0.5..5.0).contains(&blocked) && on_cpu + waiting < 0.01,
        "{text}"
    );
}

#[test]
fn threads_that_spin_and_threads_that_sleep_are_told_apart() {
    let both = "import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
while True: pass";
    let Some([on_cpu, blocked, waiting]) = watched(&["python3", "-c", both], "500ms") else {
        return;
    };
    let text = format!("{on_cpu} s on a processor, {blocked} s blocked, {waiting} s waiting");
    assert!((0.5..5.0).contains(&blocked), "{text}");
    let busy = on_cpu + waiting;
    assert!((blocked - busy).abs() < 0.1 && on_cpu > 0.0, "{text}");
}

#[test]
fn a_process_that_ends_meanwhile_ends_the_recording() {
    let begun = std::time::Instant::now();
    let Some([on_cpu, blocked, _]) = watched(&["sleep", "5"], "60s") else {
        return;
    };
    assert!(begun.elapsed().as_secs() < 40);
    assert!((0.1..5.0).contains(&blocked) && on_cpu < 0.1, "{blocked}");
}

#[test]
fn a_process_already_running_shows_what_it_is_blocked_in() {
    if is_skipped() {
        return;
    }
    let place = Place::new();
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let process = ["--pid", &pid, "--for", "500ms"];
    let lines = place.json(
        &[
            &["profile", "--off-cpu", "--json", "--out", "out"],
            &process[..],
        ]
        .concat(),
    );
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    let blocked = of_type(&lines, "times")[0]["blocked"].as_f64().unwrap();
    assert!((0.5..5.0).contains(&blocked), "{lines:?}");
    let folded = std::fs::read_to_string(place.path("out/off-cpu.folded")).unwrap();
    assert!(folded.starts_with("sleep"), "{folded}");
}

#[test]
fn a_process_that_perf_may_not_watch_is_an_error() {
    let setting = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let setting: i32 = setting.map_or(9, |text| text.trim().parse().unwrap());
    if !has("perf") || !(0..=2).contains(&setting) {
        stook_testkit::skip!("perf is not here, or any user may watch, or none");
        return;
    }
    let place = Place::new();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(place.root(), open).unwrap();
    let process = ["--out", "out", "--pid", "1", "--for", "1s"];
    let ran = place.run_as_nobody(&[&["profile", "--on-cpu"], &process[..]].concat());
    assert_eq!((ran.status, ran.text()), (Some(1), ""), "{}", ran.stderr);
    let is_told = ran.stderr.contains("error: perf cannot watch process 1");
    assert!(is_told, "{}", ran.stderr);
    assert!(!place.path("out").exists());
}

#[test]
fn an_interrupted_profile_shows_what_there_was() {
    if is_skipped() {
        return;
    }
    let place = Place::new();
    let arguments = [
        "profile",
        "--off-cpu",
        "--out",
        "out",
        "--",
        "sh",
        "-c",
        "sleep 0.05; touch begun; sleep 60",
    ];
    let mut child = place.command(&arguments).spawn().unwrap();
    let signal = Signal::ready(&child, "INT");
    assert!(wait_until(&mut child, || place.path("begun").exists()));
    signal.send();
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!(ran.status, Some(130), "{}", ran.stderr);
    assert!(
        ran.stderr.ends_with("error: interrupted\n"),
        "{}",
        ran.stderr
    );
    assert!(ran.text().contains("clock_nanosleep"), "{}", ran.text());
    assert_eq!(place.names("out"), ["off-cpu.folded", "off-cpu.svg"]);
}

/// Runs `--lines` on a Python program, with the tests' own `PATH`.
fn lines(place: &Place, function: &str, command: &[&str]) -> Ran {
    let arguments = [
        &["profile", "--quiet", "--json", "--lines", function, "--"],
        command,
    ]
    .concat();
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ran::of(
        place
            .command(&arguments)
            .env("PATH", path)
            .output()
            .unwrap(),
    )
}

const SHOP: &str = "\
import functools, sys
class Cart:
    @functools.lru_cache
    def total(self, prices):
        total = 0
        for price in prices:
            total += price
        return total
def main(count):
    for i in range(count):
        Cart().total((i, i, i))
    sys.exit(count)
if __name__ == '__main__':
    main(int(sys.argv[1]))
";

/// What perf is made to say: a thread that spins for 10 ms, is blocked for 100 ms, and ends after 10 ms more.
const RECORDED: &str = "\
x  7/7 1.000000000: PERF_RECORD_COMM exec: x:7/7
x  7/7 1.001000000:    1000000          cpu-clock:
\t           12 spin (/bin/x)
\t           13 _start (/bin/x)

x  7/7 1.010000000:          1 sched:sched_switch:
\tffffffff00000001 __schedule ([kernel.kallsyms])
\tffffffff00000002 __x64_sys_read ([kernel.kallsyms])
\t           14 read (/usr/lib/libc.so.6)
\t           13 _start (/bin/x)

x  7/7 1.010000000: PERF_RECORD_SWITCH OUT
x  7/7 1.110000000: PERF_RECORD_SWITCH IN
x  7/7 1.120000000: PERF_RECORD_EXIT(7:7):(1:1)
";

const COUNTED: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 75.00    0.300000      150000         2         1 read
 25.00    0.100000      100000         1           openat
------ ----------- ----------- --------- --------- ----------------
100.00    0.400000      133333         3         1 total
";

const TIMED: &str = r#"{"functions":[{"function":"f","file":"shop.py","lines":[
{"line":1,"hits":0,"microseconds":0.0,"source":"def f():"},
{"line":2,"hits":3,"microseconds":1.5,"source":"    g()"}]}]}"#;

/// A place with programs that say the same in every run, and the `PATH` to them.
fn made_up() -> (Place, String) {
    let place = Place::new();
    let path = programs(&place, &["true"]);
    let write_option = "while [ \"$1\" != -o ]; do shift; done";
    let perf = format!(
        "case $1 in record) {write_option}; echo made up >\"$2\";; *) /bin/cat recorded;; esac"
    );
    for (name, output, script) in [
        ("perf", ("recorded", RECORDED), perf),
        (
            "strace",
            ("counted", COUNTED),
            format!("{write_option}; /bin/cat counted >\"$2\""),
        ),
        (
            "python3",
            ("timed", TIMED),
            "/bin/cat timed >\"$4\"".to_owned(),
        ),
    ] {
        place.write(output.0, output.1);
        let program = place.path("programs").join(name);
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    (place, path)
}

/// Profiles with made-up programs; None where this user may not record, whatever the program is.
pub(crate) fn printed(arguments: &[&str]) -> Option<String> {
    let (place, path) = made_up();
    let mut command = place.command(&[&["profile"], arguments].concat());
    let ran = Ran::of(command.env("PATH", path).output().unwrap());
    if ran.stderr.contains("perf_event_paranoid") {
        stook_testkit::skip!("this user may not record with perf");
        return None;
    }
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    Some(ran.text().to_owned())
}

#[test]
fn a_profile_is_tables_or_lines_of_json() {
    let Some(text) = printed(&["--out", "out", "--", "true"]) else {
        return;
    };
    assert_snapshot!(text, @r"
    seconds   share  time of 1 thread
    -------  ------  ------------------------------
      0.020  16.7 %  on a processor
      0.100  83.3 %  blocked
      0.000   0.0 %  ready, waiting for a processor

    self s    share  total s  on the CPU, 1 sample
    ------  -------  -------  --------------------
     0.001  100.0 %    0.001  spin

    seconds    share  times  blocked in (`--dwarf` tells by whose call)
    -------  -------  -----  ------------------------------------------
      0.100  100.0 %      1  read

    % time   seconds  usecs/call  calls  errors  system call, by strace -f -c -w
    ------  --------  ----------  -----  ------  -------------------------------
     75.00  0.300000    150000.0      2       1  read
     25.00  0.100000    100000.0      1       0  openat
    100.00  0.400000    133333.3      3       1  all

    written: out/on-cpu.svg
    written: out/on-cpu.folded
    written: out/off-cpu.svg
    written: out/off-cpu.folded
    written: out/syscalls.txt
    ");
    let json = printed(&["--out", "out", "--json", "--", "true"]).unwrap();
    assert_snapshot!(json, @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"profile"}
    {"type":"times","on_cpu":0.02,"blocked":0.1,"waiting_for_cpu":0.0,"threads":1}
    {"type":"stacks","view":"on-cpu","count":1,"seconds":0.001,"cut_seconds":0.0}
    {"type":"function","function":"spin","self_seconds":0.001,"total_seconds":0.001,"view":"on-cpu"}
    {"type":"function","function":"_start","self_seconds":0.0,"total_seconds":0.001,"view":"on-cpu"}
    {"type":"stacks","view":"off-cpu","count":1,"seconds":0.1,"cut_seconds":0.0}
    {"type":"function","function":"__schedule_[k]","self_seconds":0.1,"total_seconds":0.1,"view":"off-cpu"}
    {"type":"function","function":"__x64_sys_read_[k]","self_seconds":0.0,"total_seconds":0.1,"view":"off-cpu"}
    {"type":"function","function":"_start","self_seconds":0.0,"total_seconds":0.1,"view":"off-cpu"}
    {"type":"function","function":"read","self_seconds":0.0,"total_seconds":0.1,"view":"off-cpu"}
    {"type":"place","call":"read","caller":"","times":1,"seconds":0.1}
    {"type":"syscall","name":"read","calls":2,"errors":1,"seconds":0.3}
    {"type":"syscall","name":"openat","calls":1,"errors":0,"seconds":0.1}
    {"type":"summary","lost":0,"files":["out/on-cpu.svg","out/on-cpu.folded","out/off-cpu.svg","out/off-cpu.folded","out/syscalls.txt"],"interrupted":false,"counted_by":"strace -f -c -w","missing":[],"failure":null}
    "#);
}

#[test]
fn lines_of_source_are_a_table_or_lines_of_json() {
    let program = ["--lines", "__main__:f", "--", "python3", "shop.py"];
    assert_snapshot!(printed(&program).unwrap(), @r"
    f in shop.py: 0.000002 s

    line  hits  microseconds    share  source
    ----  ----  ------------  -------  --------
       1                               def f():
       2     3           1.5  100.0 %      g()
    ");
    assert_snapshot!(printed(&[&["--json"], &program[..]].concat()).unwrap(), @r#"
    {"type":"header","schema":1,"stook":"0.1.0","command":"profile"}
    {"type":"line","line":1,"hits":0,"microseconds":0.0,"source":"def f():","function":"f","file":"shop.py"}
    {"type":"line","line":2,"hits":3,"microseconds":1.5,"source":"    g()","function":"f","file":"shop.py"}
    {"type":"summary","functions":1,"failure":null}
    "#);
}

#[test]
fn lines_of_a_python_function_are_counted() {
    let found = Command::new("python3")
        .args(["-c", "import line_profiler"])
        .output();
    if !found.is_ok_and(|output| output.status.success()) {
        stook_testkit::skip!("python3 has no line_profiler");
        return;
    }
    let place = Place::new();
    place.write("shop.py", SHOP);
    place.write("use.py", "from shop import Cart\nCart().total((1, 2))\n");
    let hits = |ran: &Ran| -> Vec<(u64, u64)> {
        let lines = json_lines(ran.text());
        let figure = |line: &Value, name: &str| line[name].as_u64().unwrap();
        lines
            .iter()
            .filter(|line| line["type"] == "line")
            .map(|line| (figure(line, "line"), figure(line, "hits")))
            .collect()
    };
    let ran = lines(&place, "__main__:Cart.total", &["python3", "shop.py", "5"]);
    assert_eq!(
        hits(&ran),
        [(3, 0), (4, 0), (5, 5), (6, 20), (7, 15), (8, 5)],
        "{}",
        ran.stderr
    );
    // The program's own status is told.
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr
            .contains("failed while it was timed: exit status 5"),
        "{}",
        ran.stderr
    );
    let ran = lines(&place, "shop:Cart.total", &["python3", "use.py"]);
    assert_eq!(
        hits(&ran),
        [(3, 0), (4, 0), (5, 1), (6, 3), (7, 2), (8, 1)],
        "{}",
        ran.stderr
    );
    assert_eq!(ran.status, Some(0));
    for (function, error) in [
        (
            "__main__:Cart.price",
            "error: `__main__` has no function `Cart.price`\nhint: it has `Cart.total`, `main`\n",
        ),
        ("store:f", "error: the program did not import `store`\n"),
        ("math:sin", "error: `math:sin` is not written in Python\n"),
    ] {
        let ran = lines(&place, function, &["python3", "shop.py", "0"]);
        assert_eq!(ran.status, Some(1));
        assert!(ran.stderr.starts_with(error), "{}", ran.stderr);
    }
}

#[test]
fn without_line_profiler_how_to_install_it_is_told() {
    let place = Place::new();
    place.write("shop.py", SHOP);
    // Without the folders for packages.
    let ran = lines(
        &place,
        "__main__:main",
        &["python3", "-I", "-S", "shop.py", "1"],
    );
    assert_eq!(ran.status, Some(1));
    assert!(
        ran.stderr
            .starts_with("error: `python3` cannot time lines: No module named"),
        "{}",
        ran.stderr
    );
    assert!(
        ran.stderr
            .ends_with("\nhint: `pip install line_profiler`, for the same Python\n"),
        "{}",
        ran.stderr
    );
}
