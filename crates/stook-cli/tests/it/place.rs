//! A folder to run the program in, and what a run left behind.
//!
//! The program runs with the folder as its working directory and gets relative paths, so that its messages
//! are the same everywhere. Databases are looked at with Python's own SQLite, not with the code under test.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use stook_testkit::{Compare, Snapshot, TempDir, Tree};

/// Longest wait for something that must happen; only a hang takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Number of the user that owns nothing.
const NOBODY: u32 = 65_534;

/// A temporary folder in which commands are run.
pub(crate) struct Place {
    folder: TempDir,
}

/// How a run ended and what it printed.
pub(crate) struct Ran {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
        }
    }

    /// Returns a place that holds this tree as `src`.
    pub(crate) fn with(tree: &Tree) -> Self {
        let place = Self::new();
        tree.write(&place.path("src")).unwrap();
        place
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(self.path(name), permissions).unwrap();
    }

    /// Copies a folder of plain files, such as an archive.
    pub(crate) fn copy(&self, from: &str, to: &str) {
        std::fs::create_dir(self.path(to)).unwrap();
        for name in self.names(from) {
            let copy = self.path(to).join(&name);
            std::fs::copy(self.path(from).join(&name), &copy).unwrap();
            make_writable(&copy);
        }
    }

    /// Returns the sorted names in a folder.
    pub(crate) fn names(&self, folder: &str) -> Vec<String> {
        names(&self.path(folder))
    }

    pub(crate) fn snapshot(&self, name: &str) -> Snapshot {
        Snapshot::take(&self.path(name)).unwrap()
    }

    /// Returns the program with these arguments, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(Path::new(env!("CARGO_BIN_EXE_stook")), arguments)
    }

    pub(crate) fn command_of(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(self.root())
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(self.command(arguments).output().unwrap())
    }

    /// Runs the program as a user whom permissions bind: as nobody if the tests run as root.
    ///
    /// It runs from an open file: nobody may not reach the folder it was built in.
    pub(crate) fn run_as_nobody(&self, arguments: &[&str]) -> Ran {
        let program = File::open(env!("CARGO_BIN_EXE_stook")).unwrap();
        let path = format!("/proc/self/fd/{}", program.as_raw_fd());
        let mut command = self.command_of(Path::new(&path), arguments);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        Ran::of(command.output().unwrap())
    }

    /// Runs a command that must succeed; returns what it printed on stdout.
    pub(crate) fn stdout(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.status, Some(0), "{arguments:?}: {}", ran.stderr);
        String::from_utf8(ran.stdout).unwrap()
    }

    /// Runs a command that must succeed; returns what it printed on stderr.
    pub(crate) fn stderr(&self, arguments: &[&str]) -> String {
        let ran = self.run(arguments);
        assert_eq!(ran.status, Some(0), "{arguments:?}: {}", ran.stderr);
        ran.stderr
    }

    /// Runs a command that must succeed; returns its lines of JSON.
    pub(crate) fn json(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        json_lines(&self.stdout(arguments))
    }

    /// The same without the last line, the summary.
    pub(crate) fn rows(&self, arguments: &[&str]) -> Vec<serde_json::Value> {
        let mut lines = self.json(arguments);
        assert_eq!(lines.pop().unwrap()["type"], "summary", "{arguments:?}");
        lines
    }

    /// Runs SQL on a database of the place, with Python.
    pub(crate) fn sql(&self, database: &str, statements: &str) {
        let script = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nc.executescript(sys.argv[2])\nc.close()";
        python(script, &[self.path(database).to_str().unwrap(), statements]);
    }

    /// Returns what an SQL query on a database of the place finds, with blanks in between.
    pub(crate) fn sql_text(&self, database: &str, query: &str) -> String {
        let script = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\nprint(*(v for row in c.execute(sys.argv[2]) for v in row))";
        let text = python(script, &[self.path(database).to_str().unwrap(), query]);
        text.trim_end().to_owned()
    }

    /// Asserts that a folder was extracted as `src` is.
    pub(crate) fn assert_same_tree(&self, source: &str, extracted: &str) {
        let difference = self
            .snapshot(source)
            .difference(&self.snapshot(extracted), &Compare::everything());
        assert_eq!(difference, [""; 0], "{source} and {extracted}");
    }
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).unwrap()
    }
}

/// Returns the sorted names in a folder; none if it is not there.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns lines of JSON without the header, which has a test of its own; that of a bench is part of its results.
pub(crate) fn json_lines(text: &str) -> Vec<serde_json::Value> {
    let parse = |line| -> serde_json::Value {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
    };
    let is_header = |line: &serde_json::Value| line.get("schema").is_some();
    text.lines().map(parse).skip_while(is_header).collect()
}

pub(crate) fn make_writable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).unwrap();
}

/// Runs a Python script, which must succeed; returns what it printed.
pub(crate) fn python(script: &str, arguments: &[&str]) -> String {
    let output = Command::new("python3")
        .args(["-W", "ignore", "-c", script])
        .args(arguments)
        .output()
        .expect("the tests need python3");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// All rows of all tables of some databases, as text; left out are times of runs, which differ from run to run, and what
/// only repeats the volumes or other rows, in groups that begin anew where a run was interrupted; and what was sent where.
///
/// A database that cannot be opened gives an empty text.
pub(crate) fn dumps(databases: &[&Path]) -> Vec<String> {
    let script = r#"
import json, os, sqlite3, sys
derived = ("stook_transfers", "stook_attributes", "stook_witnesses", "stook_name_segments", "stook_name_parts")
def dump(path):
    if not os.path.exists(path):
        return ""
    c = sqlite3.connect(path)
    lines = []
    for table, definition in c.execute("select name, sql from sqlite_master where type = 'table' order by name").fetchall():
        if table in derived:
            continue
        hidden = ("started", "finished") if table == "stook_runs" else ()
        has_ids = "without rowid" not in definition.lower()
        cursor = c.execute(f"select * from {table} order by " + ("rowid" if has_ids else "1, 2"))
        columns = [column[0] for column in cursor.description]
        for row in cursor:
            if table == "stook_meta" and row[0].startswith("store"):
                continue
            shown = [repr(v) if c not in hidden else str(v is not None) for c, v in zip(columns, row)]
            lines.append(table + ": " + ", ".join(shown))
    return "\n".join(lines)
print(json.dumps([dump(path) for path in sys.argv[1:]]))
"#;
    let arguments: Vec<&str> = databases
        .iter()
        .map(|path| path.to_str().unwrap())
        .collect();
    serde_json::from_str(&python(script, &arguments)).unwrap()
}

/// Waits until a condition holds or the process ends, looking all the time; returns true if it held.
pub(crate) fn wait_until(child: &mut Child, mut holds: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    loop {
        if holds() {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        assert!(started.elapsed() < PATIENCE, "it never came");
        std::thread::yield_now();
    }
}

/// A signal that is ready to be sent at once: a shell that waits for a line, then kills.
pub(crate) struct Signal {
    shell: Child,
}

impl Signal {
    /// Gets the signal of this name ready for a process.
    pub(crate) fn ready(child: &Child, name: &str) -> Self {
        let script = format!("read line; kill -{name} {}", child.id());
        let shell = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Self { shell }
    }

    pub(crate) fn send(mut self) {
        self.shell.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert!(self.shell.wait().unwrap().success());
    }
}

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status
        .lines()
        .any(|line| line.starts_with("Uid:") && line.split_whitespace().nth(2) == Some("0"))
}
