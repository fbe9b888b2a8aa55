//! Facts that samples mean nothing without: machine, programs, options, files, what the labels name.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::figure::{Unit, clean, three_digits, with_groups};
use crate::machine::Machine;
use crate::record::Header;

use super::case::as_float;
use super::sheet::Sheet;

/// Facts of one sort: name and value.
pub(super) type Facts = Vec<(String, String)>;

/// Returns the facts of a run in groups, each with its title; groups without facts are left out.
pub(super) fn groups(header: &Header) -> Vec<(&'static str, Facts)> {
    let named = |facts: &mut dyn Iterator<Item = (&String, String)>| -> Facts {
        facts
            .map(|(name, value)| (words(name), clean(&value)))
            .collect()
    };
    let programs = named(
        &mut header
            .programs
            .iter()
            .map(|(name, version)| (name, version.clone())),
    );
    let options = named(
        &mut header
            .options
            .iter()
            .map(|(name, value)| (name, plain(value))),
    );
    let mut groups = vec![
        ("Machine", machine(&header.machine)),
        ("Programs", programs),
        ("Options", options),
    ];
    groups.push((
        "Files",
        header.files.as_ref().map(files).unwrap_or_default(),
    ));
    groups.retain(|(_, facts)| !facts.is_empty());
    groups
}

fn machine(machine: &Machine) -> Facts {
    let fact = |name: &str, value: String| (name.to_owned(), clean(&value));
    let mut facts = vec![
        fact("processor", machine.processor.clone()),
        fact("processors", machine.processors.to_string()),
        fact("system", machine.system.clone()),
        fact("kernel", machine.kernel.clone()),
        fact(
            "run by",
            if machine.is_superuser {
                "the superuser"
            } else {
                "an ordinary user"
            }
            .to_owned(),
        ),
    ];
    if let Some(bytes) = machine.memory_bytes {
        facts.insert(2, fact("memory", Unit::Bytes.show(as_float(bytes))));
    }
    if let Some(load) = machine.load_average {
        facts.push(fact("load average before", format!("{load:.2}")));
    }
    facts
}

/// In this order, as the table of a file set has them; others follow.
const PROPERTIES: [&str; 8] = [
    "format", "bytes", "files", "mean", "stdev", "min", "median", "max",
];

/// What holds for the one set of files; nothing if there are several.
fn files(files: &Value) -> Facts {
    match files {
        Value::Object(fields) if !is_nested(fields) => {
            let mut facts: Vec<(&String, &Value)> = fields.iter().collect();
            facts.sort_by_key(|(name, _)| place(name));
            facts
                .into_iter()
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

fn place(property: &str) -> usize {
    PROPERTIES
        .iter()
        .position(|known| *known == property)
        .unwrap_or(PROPERTIES.len())
}

fn figure(value: &Value) -> String {
    value.as_f64().map_or_else(|| plain(value), number)
}

/// Returns a whole number with commas, a fraction with three digits.
pub(super) fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        with_groups(&format!("{value:.0}"))
    } else {
        three_digits(value)
    }
}

/// Returns the table of several sets of files, each with its name.
pub(super) fn file_sets(header: &Header) -> Sheet {
    let mut sheet = Sheet::new("Files", "");
    let Some(Value::Object(sets)) = &header.files else {
        return sheet;
    };
    if !is_nested(sets) {
        return sheet;
    }
    let properties = || {
        sets.values()
            .filter_map(Value::as_object)
            .flat_map(Map::keys)
    };
    let mut names: Vec<&String> = properties().collect();
    names.sort_by_key(|name| (place(name), name.as_str()));
    names.dedup();
    sheet.texts("name", sets.keys().cloned());
    for name in names {
        let cells = sets.values().map(|set| set.get(name));
        sheet.shown(
            &words(name),
            cells.map(|value| {
                (
                    value.map_or_else(|| "–".to_owned(), figure),
                    value.and_then(Value::as_f64),
                )
            }),
        );
    }
    sheet
}

/// Returns a name of JSON as words.
pub(super) fn words(name: &str) -> String {
    clean(name).replace('_', " ")
}

/// Returns a value of JSON as a reader likes it: texts without quotes, lists with blanks.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<String>>().join(" "),
        Value::Bool(is) => if *is { "yes" } else { "no" }.to_owned(),
        Value::Null => "none".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Object(_) => clean(&value.to_string()),
    }
}

/// Returns the table of what the labels name, such as the file system of each target.
pub(super) fn named(header: &Header) -> Sheet {
    let mut sheet = Sheet::new("What the names stand for", "");
    let names: BTreeSet<&String> = header
        .facts
        .values()
        .flat_map(|facts| facts.keys())
        .collect();
    if names.is_empty() {
        return sheet;
    }
    sheet.texts("name", header.facts.keys().cloned());
    for name in names {
        let value = |facts: &std::collections::BTreeMap<String, String>| {
            facts.get(name).cloned().unwrap_or_else(|| "–".to_owned())
        };
        sheet.texts(&words(name), header.facts.values().map(value));
    }
    sheet
}
