//! How Python reads numbers and prints texts.

use std::borrow::Cow;

/// Returns the first character of a text: a byte, where it is not UTF-8.
pub(super) fn first_character(text: &[u8]) -> &[u8] {
    let whole = |len: &usize| {
        text.get(..*len)
            .is_some_and(|it| std::str::from_utf8(it).is_ok())
    };
    let len = (1..=4).find(whole).unwrap_or_else(|| text.len().min(1));
    &text[..len]
}

/// Returns a text as Python prints it on a stream that cannot hold every byte: such bytes as `\udcNN`.
pub(crate) fn display(text: &[u8]) -> String {
    let mut printed = String::new();
    for chunk in text.utf8_chunks() {
        printed.push_str(chunk.valid());
        for byte in chunk.invalid() {
            printed.push_str(&format!("\\udc{byte:02x}"));
        }
    }
    printed
}

/// Returns a text as `repr` does: quoted, with what cannot be printed escaped.
pub(crate) fn repr(text: &[u8]) -> String {
    let quote = if text.contains(&b'\'') && !text.contains(&b'"') {
        '"'
    } else {
        '\''
    };
    let mut printed = String::from(quote);
    for chunk in text.utf8_chunks() {
        for character in chunk.valid().chars() {
            push_escaped(&mut printed, character, quote);
        }
        for byte in chunk.invalid() {
            printed.push_str(&format!("\\udc{byte:02x}"));
        }
    }
    printed.push(quote);
    printed
}

fn push_escaped(printed: &mut String, character: char, quote: char) {
    let code = u32::from(character);
    match character {
        '\\' => printed.push_str("\\\\"),
        '\n' => printed.push_str("\\n"),
        '\r' => printed.push_str("\\r"),
        '\t' => printed.push_str("\\t"),
        _ if character == quote => {
            printed.push('\\');
            printed.push(character);
        }
        ' '..='~' => printed.push(character),
        _ if code < 0x100 && (character.is_control() || matches!(code, 0xa0 | 0xad)) => {
            printed.push_str(&format!("\\x{code:02x}"));
        }
        _ if is_printable(character) => printed.push(character),
        _ if code < 0x1_0000 => printed.push_str(&format!("\\u{code:04x}")),
        _ => printed.push_str(&format!("\\U{code:08x}")),
    }
}

/// Rust escapes for its own `{:?}` what cannot be printed, and also marks that join the character before.
fn is_printable(character: char) -> bool {
    !character.is_whitespace() && character.escape_debug().count() == 1
}

/// Returns true for what `argparse` takes for a negative number.
pub(super) fn is_negative_number(text: &[u8]) -> bool {
    let Some(number) = text.strip_prefix(b"-") else {
        return false;
    };
    let is_digits = |digits: &[u8]| digits.iter().all(u8::is_ascii_digit);
    match number.iter().position(|&byte| byte == b'.') {
        None => !number.is_empty() && is_digits(number),
        Some(at) => {
            is_digits(&number[..at]) && at + 1 < number.len() && is_digits(&number[at + 1..])
        }
    }
}

/// Reads a number as `int(text)` does. One past 128 bits counts as the largest.
pub(super) fn integer(text: &[u8]) -> Option<i128> {
    let text = trimmed(text)?;
    let (is_negative, digits) = sign(&text);
    let digits = without_underscores(digits)?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let number = digits.parse::<i128>().unwrap_or(i128::MAX);
    Some(if is_negative { -number } else { number })
}

/// Reads a number as `float(text)` does.
pub(super) fn float(text: &[u8]) -> Option<f64> {
    let text = trimmed(text)?;
    let (is_negative, number) = sign(&text);
    let lower = number.to_ascii_lowercase();
    let number = match lower.as_str() {
        "inf" | "infinity" => f64::INFINITY,
        "nan" => f64::NAN,
        _ => {
            let digits = without_underscores(number)?;
            let is_number = digits
                .bytes()
                .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
            if !is_number || digits.starts_with(['+', '-']) {
                return None;
            }
            digits.parse().ok()?
        }
    };
    Some(if is_negative { -number } else { number })
}

fn trimmed(text: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(text).ok()?;
    // As Python: also the separators of files, groups, records and units.
    let is_blank = |it: char| it.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&it);
    Some(Cow::Borrowed(text.trim_matches(is_blank)))
}

fn sign(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Underscores may stand between two digits.
fn without_underscores(digits: &str) -> Option<String> {
    let bytes = digits.as_bytes();
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    for (at, _) in digits.match_indices('_') {
        if !is_digit(at.checked_sub(1)) || !is_digit(Some(at + 1)) {
            return None;
        }
    }
    Some(digits.replace('_', ""))
}
