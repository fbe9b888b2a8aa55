//! The programs that are compared, and how the user names them.
//!
//! A tool is one line for the shell for each operation, with places such as `{source}`. What is known about a program is
//! these lines alone: nothing else in this bench tells stook from any other.

use std::collections::BTreeMap;
use std::path::Path;

use super::Finish;
use crate::error::BenchError;
use crate::job::{Job, Output};
use crate::template::Places;

/// What a tool does with an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Makes the archive out of the source.
    Create,
    /// Adds to it what has changed in the source since.
    Update,
    /// Reads all of it, and compares it with what is known about it, if anything is.
    Check,
    /// Writes all newest versions into an empty directory.
    Extract,
    /// Prints the names in it, in its order.
    List,
    /// Finds out what an update would add, and writes nothing.
    DryRun,
    /// Prints the names that an update would add.
    Changes,
}

impl Operation {
    const ALL: [Self; 7] = [
        Self::Create,
        Self::Update,
        Self::Check,
        Self::Extract,
        Self::List,
        Self::DryRun,
        Self::Changes,
    ];
    /// Those of [`Operation::ALL`].
    const WORDS: [&str; 7] = [
        "create", "update", "check", "extract", "list", "dry-run", "changes",
    ];

    /// Returns the word for it, as in the place `{operation}`.
    pub fn word(self) -> &'static str {
        Self::WORDS[self as usize]
    }
}

/// A program that is measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// How it is called in tables.
    pub name: String,
    lines: BTreeMap<Operation, String>,
    /// The line that prints its version, if it is known.
    version: Option<String>,
}

/// A tool that is known by its name.
struct BuiltIn {
    name: &'static str,
    /// Prints its version.
    version: &'static str,
    /// Those of [`Operation::ALL`].
    lines: [&'static str; 7],
}

const BUILT_IN: [BuiltIn; 3] = [
    BuiltIn {
        name: "stook",
        version: "{stook} --version",
        lines: [
            "{stook} create -v --json --store {store} {source} {archive} >&2",
            "{stook} update -v --json --deletions record --store {store} {source} {archive} >&2",
            "{stook} check -v --json {archive} >&2",
            "{stook} extract -v --json {archive} --into {into} --jobs {workers} >&2",
            "{stook} list --null {archive}",
            "{stook} update -v --json --dry-run --deletions record --store none {source} {archive} >&2",
            "{stook} diff --json --no-metadata {source} {archive}",
        ],
    },
    // Incremental archives, as the manual of GNU tar has them for backups: what has changed follows from times and inode
    // numbers that tar keeps beside. Its `--update` would read all headers of the archive first, and would pass over files
    // that have become older.
    BuiltIn {
        name: "tar",
        version: "tar --version",
        lines: [
            "tar -cf {archive}/0.tar --listed-incremental={archive}/state -C {source} .",
            "tar -cf {archive}/1.tar --listed-incremental={archive}/state -C {source} .",
            "tar -xOf {archive}/0.tar && tar -xOf {archive}/1.tar",
            "tar -xf {archive}/0.tar -C {into} && tar -xf {archive}/1.tar -C {into}",
            "tar -tf {archive}/0.tar --quoting-style=literal && tar -tf {archive}/1.tar --quoting-style=literal",
            "",
            "",
        ],
    },
    BuiltIn {
        name: "zstash",
        version: "zstash version",
        lines: [
            "zstash create -v --hpss={hpss} --cache={archive} {source}",
            "cd {source} && zstash update -v --hpss={hpss} --cache={archive}",
            "cd {archive} && zstash check --hpss={hpss} --cache={archive}",
            "cd {into} && zstash extract --hpss={hpss} --cache={archive} --workers={workers}",
            "cd {archive} && zstash ls --hpss={hpss} --cache={archive}",
            "cd {source} && zstash update -v --dry-run --hpss=none --cache={archive}",
            "cd {source} && zstash update --dry-run --hpss=none --cache={archive} | tail -n +2",
        ],
    },
];

impl Tool {
    /// Returns the tools that the user names, in the order of their first mention: each text is `NAME` of one that is
    /// built in, `NAME=COMMAND` for all operations, or `NAME:OPERATION=COMMAND` for one, no command meaning that the tool
    /// does not have it.
    ///
    /// A command for all operations without `{operation}` in it gets its places as arguments: the operation, the source,
    /// the archive, where to extract, and how many workers.
    ///
    /// # Errors
    /// [`BenchError::Usage`] for anything else.
    pub fn parse(texts: &[String]) -> Result<Vec<Self>, BenchError> {
        let mut tools: Vec<Self> = Vec::new();
        for text in texts {
            let named = Named::parse(text)?;
            match tools.iter_mut().find(|tool| tool.name == named.name) {
                None => tools.push(Self::begin(text, &named)?),
                Some(tool) => match (named.operation, named.command) {
                    (Some(operation), Some(command)) => tool.set(operation, command),
                    _ => return Err(usage(text, "that tool is named twice")),
                },
            }
        }
        Ok(tools)
    }

    fn begin(text: &str, named: &Named<'_>) -> Result<Self, BenchError> {
        let built_in = BUILT_IN.iter().find(|tool| tool.name == named.name);
        let mut tool = Self {
            name: named.name.to_owned(),
            lines: BTreeMap::new(),
            version: built_in.map(|tool| tool.version.to_owned()),
        };
        let of_all = match (named.operation, named.command, built_in) {
            (None, Some(command), _) => {
                tool.version = None;
                [with_arguments(command).as_str(); 7].map(ToOwned::to_owned)
            }
            (_, _, Some(built_in)) => built_in.lines.map(ToOwned::to_owned),
            (Some(_), ..) => Default::default(),
            (None, None, None) => {
                let why = "it is none of stook, tar and zstash, and has no =COMMAND";
                return Err(usage(text, why));
            }
        };
        for (operation, line) in Operation::ALL.into_iter().zip(&of_all) {
            tool.set(operation, line);
        }
        if let (Some(operation), Some(command)) = (named.operation, named.command) {
            tool.set(operation, command);
        }
        Ok(tool)
    }

    fn set(&mut self, operation: Operation, line: &str) {
        if line.trim().is_empty() {
            self.lines.remove(&operation);
        } else {
            self.lines.insert(operation, line.to_owned());
        }
    }

    /// Refuses a tool that lacks one of these operations.
    ///
    /// # Errors
    /// [`BenchError::NoToolCommand`].
    pub(crate) fn require(&self, operations: &[Operation]) -> Result<(), BenchError> {
        for &operation in operations {
            if !self.lines.contains_key(&operation) {
                return Err(BenchError::NoToolCommand {
                    tool: self.name.clone(),
                    operation: operation.word(),
                });
            }
        }
        Ok(())
    }

    /// Returns the line for an operation as the user gave it, if the tool has it.
    pub fn line(&self, operation: Operation) -> Option<&str> {
        self.lines.get(&operation).map(String::as_str)
    }

    /// Returns true if the number of workers that extract can be set.
    pub(crate) fn has_workers(&self) -> bool {
        self.line(Operation::Extract)
            .is_some_and(|line| line.contains("{workers}"))
    }

    /// Returns whether the tool sends what it creates to a store, at a place that these names stand for.
    pub(crate) fn sends_to(&self, places: &[&str]) -> bool {
        let line = self.line(Operation::Create).unwrap_or_default();
        places.iter().any(|place| line.contains(place))
    }

    /// Returns the command for an operation, if the tool has it.
    pub(crate) fn job(&self, operation: Operation, places: Places, finish: Finish) -> Option<Job> {
        let line = self.line(operation)?;
        let places = places.with("operation", operation.word());
        let written = match (finish, operation) {
            (Finish::Ended, _)
            | (_, Operation::Check | Operation::List | Operation::DryRun | Operation::Changes) => {
                None
            }
            (Finish::OnDisk, Operation::Extract) => Some("{into}"),
            (Finish::OnDisk, _) => Some("{archive}"),
        };
        let job = match written {
            // A group of its own, as the line may be several commands.
            Some(place) => places.shell(&format!("{{ {line}\n}} && sync -f {place}")),
            None => places.shell(line),
        };
        Some(Job {
            log: Output::Kept,
            ..job
        })
    }

    /// Returns the command that prints the version, if it is known.
    pub(crate) fn version(&self, stook: &Path) -> Option<Job> {
        let places = Places::default().with("stook", stook);
        Some(places.shell(self.version.as_deref()?))
    }
}

/// One text of the user.
struct Named<'a> {
    name: &'a str,
    operation: Option<Operation>,
    command: Option<&'a str>,
}

impl<'a> Named<'a> {
    fn parse(text: &'a str) -> Result<Self, BenchError> {
        let (left, command) = match text.split_once('=') {
            Some((left, command)) => (left, Some(command)),
            None => (text, None),
        };
        let (name, word) = match left.split_once(':') {
            Some((name, word)) => (name, Some(word)),
            None => (left, None),
        };
        let is_plain = |c: char| c.is_alphanumeric() || "-_.+".contains(c);
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(usage(
                text,
                "it must begin with a name of letters, digits, `-`, `_`, `.` and `+`",
            ));
        }
        let known = |word| {
            Operation::ALL
                .into_iter()
                .find(|operation| operation.word() == word)
        };
        let operation = word.map(|word| {
            let why = "operations are create, update, check, extract, list, dry-run and changes";
            known(word).ok_or_else(|| usage(text, why))
        });
        let operation = operation.transpose()?;
        if operation.is_some() && command.is_none() {
            return Err(usage(text, "an operation needs its =COMMAND"));
        }
        if operation.is_none() && command.is_some_and(|command| command.trim().is_empty()) {
            return Err(usage(text, "the command is missing"));
        }
        Ok(Self {
            name,
            operation,
            command,
        })
    }
}

fn usage(text: &str, why: &str) -> BenchError {
    BenchError::usage(format!("cannot use `{text}` as a tool: {why}"))
}

fn with_arguments(command: &str) -> String {
    if command.contains("{operation}") {
        command.to_owned()
    } else {
        format!("{command} {{operation}} {{source}} {{archive}} {{into}} {{workers}}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<Vec<Tool>, String> {
        let texts: Vec<String> = texts.iter().map(ToString::to_string).collect();
        Tool::parse(&texts).map_err(|error| error.to_string())
    }

    fn text_of(tool: &Tool, operation: Operation, finish: Finish) -> String {
        let places = Places::default()
            .with("stook", "/bin/stook")
            .with("source", "/w/it's {into}")
            .with("archive", "/w/archive")
            .with("into", "/w/into")
            .with("workers", "2");
        let job = tool.job(operation, places, finish).unwrap();
        job.command[2].to_str().unwrap().to_owned()
    }

    fn text(tool: &Tool, operation: Operation) -> String {
        text_of(tool, operation, Finish::Ended)
    }

    #[test]
    fn a_command_without_places_gets_them_as_arguments() {
        let tools = parse(&["mine=./mine --fast"]).unwrap();
        assert_eq!(
            text(&tools[0], Operation::Extract),
            r"./mine --fast extract '/w/it'\''s {into}' '/w/archive' '/w/into' 2"
        );
        assert!(tools[0].has_workers());
        let tools = parse(&["mine=./mine {operation} ${HOME} {x} {archive}"]).unwrap();
        assert_eq!(
            text(&tools[0], Operation::Check),
            "./mine check ${HOME} {x} '/w/archive'"
        );
        assert!(!tools[0].has_workers());
    }

    #[test]
    fn what_is_written_is_brought_to_the_disk_if_that_counts() {
        let tools = parse(&["mine=cp {operation}; true"]).unwrap();
        let text = |operation| text_of(&tools[0], operation, Finish::OnDisk);
        assert_eq!(
            text(Operation::Update),
            "{ cp update; true\n} && sync -f '/w/archive'"
        );
        assert!(text(Operation::Extract).ends_with("&& sync -f '/w/into'"));
        assert_eq!(text(Operation::Check), "cp check; true");
    }

    #[test]
    fn operations_are_replaced_and_taken_away_one_by_one() {
        let tools = parse(&["tar", "stook:create={stook} create -j1", "tar:check="]).unwrap();
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["tar", "stook"]);
        assert_eq!(tools[0].line(Operation::Check), None);
        assert_eq!(
            text(&tools[1], Operation::Create),
            "'/bin/stook' create -j1"
        );
        assert_eq!(
            text(&tools[1], Operation::Check),
            "'/bin/stook' check -v --json '/w/archive' >&2"
        );
    }

    #[test]
    fn what_makes_no_sense_is_reported() {
        let why = |text: &str| parse(&[text]).unwrap_err();
        for (text, expected) in [
            (
                "cpio",
                "it is none of stook, tar and zstash, and has no =COMMAND",
            ),
            ("mine= ", "the command is missing"),
            (
                "mine:make=x",
                "operations are create, update, check, extract, list, dry-run and changes",
            ),
            ("mine:create", "an operation needs its =COMMAND"),
            (
                "a b=x",
                "it must begin with a name of letters, digits, `-`, `_`, `.` and `+`",
            ),
        ] {
            assert_eq!(
                why(text),
                format!("cannot use `{text}` as a tool: {expected}")
            );
        }
        assert_eq!(
            parse(&["tar", "tar"]).unwrap_err(),
            "cannot use `tar` as a tool: that tool is named twice"
        );
        let tools = parse(&["mine:create=x", "mine:extract=y"]).unwrap();
        let needed = [Operation::Create, Operation::Update];
        let why = tools[0].require(&needed).unwrap_err().to_string();
        assert_eq!(why, "the tool `mine` has no command for update");
    }
}
