//! Ten thousand command lines, made from a seed, against the real `argparse`: same values, same errors, same help.

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value as Json, json};

use super::{Parser, Stop, Value, terminal_columns};
use crate::zstash::commands;

const LINES: usize = 10_000;

/// Our own grammar of zstash's command line in Python, and what makes command lines of it.
const ORACLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/zstash/oracle.py");

fn parsers() -> BTreeMap<&'static str, &'static Parser> {
    BTreeMap::from([
        ("", &commands::TOP),
        ("create", &commands::CREATE),
        ("update", &commands::UPDATE),
        ("extract", &commands::EXTRACT),
        ("ls", &commands::LS),
        ("chgrp", &commands::CHGRP),
    ])
}

/// The texts of the help, which are ours; the grammar is the oracle's own.
fn texts() -> Json {
    let of_parser = |parser: &Parser| {
        let helps = parser.arguments.iter();
        json!({
            "description": parser.description,
            "help": helps.map(|it| (it.name, it.help)).collect::<BTreeMap<_, _>>(),
        })
    };
    let all = parsers().into_iter();
    json!(
        all.map(|(name, parser)| (name, of_parser(parser)))
            .collect::<BTreeMap<_, _>>()
    )
}

fn oracle(seed: u64) -> Option<Vec<Json>> {
    let mut child = Command::new("python3")
        .args([ORACLE, &seed.to_string(), &LINES.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .ok()?;
    let text = texts().to_string();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(text.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    Some(lines.collect())
}

/// Bytes travel as the numbers of characters up to 255.
fn bytes(text: &Json) -> Vec<u8> {
    let characters = text.as_str().unwrap().chars();
    characters
        .map(|it| u8::try_from(u32::from(it)).unwrap())
        .collect()
}

fn text(bytes: &[u8]) -> Json {
    json!(
        bytes
            .iter()
            .map(|&byte| char::from(byte))
            .collect::<String>()
    )
}

fn value(value: &Value) -> Json {
    match value {
        Value::Absent => Json::Null,
        Value::Switch(given) => json!(given),
        Value::Text(bytes) => text(bytes),
        Value::Integer(number) => json!(number.to_string()),
        Value::Float(number) => json!(format!("{:016x}", number.to_bits())),
        Value::Texts(texts) => json!(texts.iter().map(|it| text(it)).collect::<Vec<_>>()),
    }
}

#[test]
fn ten_thousand_command_lines_are_parsed_as_by_python() {
    let Some(lines) = oracle(20_261_123) else {
        return stook_testkit::skip!("there is no python3");
    };
    if let Some(reason) = lines[0].get("skipped") {
        return stook_testkit::skip!("{}", reason.as_str().unwrap());
    }
    assert_eq!(lines.len(), LINES);
    let (mut good, mut helps) = (0, 0);
    for line in &lines {
        let command = line["command"].as_str().unwrap();
        let parser = parsers()[command];
        let typed = line["typed"].as_array().unwrap();
        let typed: Vec<Vec<u8>> = typed.iter().map(bytes).collect();
        let columns = line["columns"].as_str().map(str::as_bytes);
        let found = match parser.parse(&typed) {
            Ok(values) => {
                good += 1;
                let values = values.all.iter().filter(|(name, _)| *name != "help");
                let values = values.map(|(name, it)| (*name, value(it)));
                json!({"values": values.collect::<BTreeMap<_, _>>()})
            }
            Err(Stop::Help) => {
                helps += 1;
                json!({"help": parser.help_text(terminal_columns(columns, None))})
            }
            Err(Stop::Error(text)) => {
                json!({"error": format!("{}zstash: error: {text}\n", parser.usage_text())})
            }
        };
        assert_eq!(found, line["outcome"], "{command} {}", line["typed"]);
    }
    // The test is worth something only if it meets all three.
    assert!(good > LINES / 5, "{good}");
    assert!(helps > LINES / 100, "{helps}");
}
