//! The exit status tells what became of the work, and of the data that was printed.

use std::path::Path;

use crate::commands::sample_tree;
use crate::place::{Place, Ran};

/// Runs the program from a shell, with a redirection.
fn redirected(place: &Place, command_line: &str) -> Ran {
    let program = env!("CARGO_BIN_EXE_stook");
    let shell = Path::new("/bin/sh");
    let script = command_line.replace("stook", program);
    Ran::of(place.command_of(shell, &["-c", &script]).output().unwrap())
}

#[test]
fn a_closed_stdout_is_an_error_of_commands_with_data() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    place.write("src/new", "new");
    for command in [
        "walk src",
        "walk src --summary",
        "walk src --json",
        "list arc",
        "list arc --runs",
        "cat arc a",
        "diff src arc",
        "check arc --json",
        "remove --dry-run src",
        "copy --dry-run src new",
        "completions bash",
        "--help",
    ] {
        for closed in [">&-", "1</dev/null"] {
            let ran = redirected(&place, &format!("stook {command} {closed}"));
            assert_eq!(ran.status, Some(1), "{command} {closed}: {}", ran.stderr);
            let expected = "error: cannot write the output: stdout is closed\n";
            assert!(ran.stderr.ends_with(expected), "{command}: {}", ran.stderr);
        }
    }
    for fine in [
        "check arc >&-",
        "walk src >/dev/null",
        "walk src 1<>/dev/null",
    ] {
        let ran = redirected(&place, &format!("stook {fine}"));
        assert_eq!(ran.status, Some(0), "{fine}: {}", ran.stderr);
    }
}

#[test]
fn diff_tells_of_differences_by_its_status_if_asked() {
    let place = Place::with(&sample_tree());
    place.stderr(&["create", "src", "arc"]);
    let status = || place.run(&["diff", "src", "arc", "--exit-code"]).status;
    assert_eq!(status(), Some(0));
    place.write("src/a", "changed");
    assert_eq!(status(), Some(1));
    assert_eq!(place.run(&["diff", "src", "arc"]).status, Some(0));
}
