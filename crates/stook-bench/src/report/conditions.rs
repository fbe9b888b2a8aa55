//! Facts that samples mean nothing without: machine, programs, options, files, what the labels name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::words::{number, plain, words};
use crate::cases::as_float;
use crate::figure::{Unit, clean};
use crate::machine::Machine;
use crate::record::Header;
use crate::table::Table;

/// Facts of one sort: name and value.
pub(super) type Facts = Vec<(String, String)>;

/// Returns the facts of a run in groups, each with its title; groups without facts are left out.
pub(super) fn groups(header: &Header) -> Vec<(&'static str, Facts)> {
    let programs = header.programs.iter();
    let programs = programs.map(|(name, version)| (words(name), clean(version)));
    let options = header.options.iter();
    let options = options.map(|(name, value)| (words(name), plain(value)));
    let mut groups = vec![
        ("Machine", machine(&header.machine)),
        ("Programs", programs.collect()),
        ("Options", options.collect()),
        (
            "Files",
            header.files.as_ref().map(files).unwrap_or_default(),
        ),
    ];
    groups.retain(|(_, facts)| !facts.is_empty());
    groups
}

fn machine(machine: &Machine) -> Facts {
    let user = match machine.is_superuser {
        true => "the superuser",
        false => "an ordinary user",
    };
    let memory = machine
        .memory_bytes
        .map(|bytes| Unit::Bytes.show(as_float(bytes)));
    let facts = [
        ("processor", Some(machine.processor.clone())),
        ("processors", Some(machine.processors.to_string())),
        ("memory", memory),
        ("system", Some(machine.system.clone())),
        ("kernel", Some(machine.kernel.clone())),
        ("run by", Some(user.to_owned())),
        (
            "load average before",
            machine.load_average.map(|load| format!("{load:.2}")),
        ),
    ];
    let facts = facts.into_iter();
    facts
        .filter_map(|(name, value)| Some((name.to_owned(), clean(&value?))))
        .collect()
}

/// In this order, as the table of a file set has them; others follow.
const PROPERTIES: [&str; 8] = [
    "format", "bytes", "files", "mean", "stdev", "min", "median", "max",
];

fn place(property: &str) -> usize {
    let found = PROPERTIES.iter().position(|known| *known == property);
    found.unwrap_or(PROPERTIES.len())
}

fn figure(value: &Value) -> String {
    value.as_f64().map_or_else(|| plain(value), number)
}

/// What holds for the one set of files; nothing if there are several.
fn files(files: &Value) -> Facts {
    match files {
        Value::Object(fields) if !is_nested(fields) => {
            let mut facts: Vec<(&String, &Value)> = fields.iter().collect();
            facts.sort_by_key(|(name, _)| place(name));
            let facts = facts.into_iter();
            facts
                .map(|(name, value)| (words(name), figure(value)))
                .collect()
        }
        Value::Object(_) | Value::Null => Vec::new(),
        other => vec![("files".to_owned(), plain(other))],
    }
}

fn is_nested(fields: &Map<String, Value>) -> bool {
    !fields.is_empty() && fields.values().all(Value::is_object)
}

/// Returns the table of several sets of files, each with its name.
pub(super) fn file_sets(header: &Header) -> Table {
    let mut table = Table::default();
    let Some(sets) = header
        .files
        .as_ref()
        .and_then(Value::as_object)
        .filter(|sets| is_nested(sets))
    else {
        return table;
    };
    let properties = sets
        .values()
        .filter_map(Value::as_object)
        .flat_map(Map::keys);
    let mut names: Vec<&String> = properties.collect();
    names.sort_by_key(|name| (place(name), name.as_str()));
    names.dedup();
    table.texts("name", sets.keys().cloned());
    for name in names {
        let cells = sets.values().map(|set| {
            let value = set.get(name);
            (
                value.map_or_else(|| "–".to_owned(), figure),
                value.and_then(Value::as_f64),
            )
        });
        table.written(&words(name), cells);
    }
    table
}

/// Returns the table of what the labels name, such as the file system of each target.
pub(super) fn named(header: &Header) -> Table {
    let mut table = Table::default();
    let names: BTreeSet<&String> = header.facts.values().flat_map(BTreeMap::keys).collect();
    if names.is_empty() {
        return table;
    }
    table.texts("name", header.facts.keys().cloned());
    for name in names {
        let facts = header.facts.values();
        let value = |facts: &BTreeMap<String, String>| facts.get(name).cloned();
        table.texts(
            &words(name),
            facts.map(|facts| value(facts).unwrap_or_else(|| "–".to_owned())),
        );
    }
    table
}
