//! Samples as comma-separated values: the columns of zstash's study, then ours.
//!
//! zstash's plotting script finds columns by their names, and takes all rows of a file for one program: so a file for each
//! tool is what it should be given.

use super::sources::PAIRS;
use crate::record::{Header, Sample};

/// Returns the line with the names of the columns, with its end.
pub fn csv_header() -> String {
    let theirs = "test_label,create_subdir,update_subdir,hpss_label,operation,elapsed_seconds";
    let ours = "tool,repeat,user_seconds,system_seconds,peak_bytes,files,bytes,building_seconds,sending_seconds";
    format!("{theirs},{ours}\n")
}

/// Returns one sample as a line, with its end.
pub fn csv_row(header: &Header, sample: &Sample) -> String {
    let number = |number: Option<u64>| number.map_or_else(String::new, |number| number.to_string());
    let seconds =
        |seconds: Option<f64>| seconds.map_or_else(String::new, |seconds| format!("{seconds:.6}"));
    let cells = [
        test_label(header, sample),
        quoted(sample.label("create")),
        quoted(sample.label("update")),
        match sample.label("store") {
            "" => "none".to_owned(),
            store => quoted(store),
        },
        quoted(sample.label("operation")),
        format!("{:.6}", sample.real_seconds),
        quoted(sample.label("tool")),
        sample.round.to_string(),
        format!("{:.6}", sample.user_seconds),
        format!("{:.6}", sample.system_seconds),
        number(sample.peak_bytes),
        number(sample.files),
        number(sample.bytes),
        seconds(sample.building_seconds),
        seconds(sample.sending_seconds),
    ];
    format!("{}\n", cells.join(","))
}

/// The places of both directories in the order of the user: `01` is the first one, updated by the second.
fn test_label(header: &Header, sample: &Sample) -> String {
    let dirs = header.options.get("dirs").and_then(|dirs| dirs.as_array());
    let place = |label: &str| dirs?.iter().position(|dir| dir == label);
    match (place(sample.label("create")), place(sample.label("update"))) {
        (Some(first), Some(second)) if PAIRS.contains(&(first, second)) => {
            format!("{first}{second}")
        }
        _ => String::new(),
    }
}

/// A cell that holds any text.
///
/// # Source
/// RFC 4180.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Kind, labels};
    use serde_json::json;

    #[test]
    fn columns_are_those_of_zstash_and_then_ours() {
        assert_eq!(
            csv_header(),
            "test_label,create_subdir,update_subdir,hpss_label,operation,elapsed_seconds,\
             tool,repeat,user_seconds,system_seconds,peak_bytes,files,bytes,building_seconds,sending_seconds\n"
        );
        let mut header = Header::new(Kind::Update, "2026-11-21T10:00:00Z");
        header
            .options
            .insert("dirs".to_owned(), json!(["build", "run, \"2\"", "init"]));
        let of_sample = [
            ("tool", "stook"),
            ("create", "init"),
            ("update", "run, \"2\""),
            ("operation", "extract_seq"),
        ];
        let sample = Sample {
            round: 2,
            labels: labels(of_sample),
            real_seconds: 1.25,
            user_seconds: 0.5,
            system_seconds: 0.000_000_4,
            peak_bytes: Some(1 << 20),
            files: Some(7),
            ..Sample::default()
        };
        assert_eq!(
            csv_row(&header, &sample),
            "21,init,\"run, \"\"2\"\"\",none,extract_seq,1.250000,stook,2,0.500000,0.000000,1048576,7,,,\n"
        );
    }
}
