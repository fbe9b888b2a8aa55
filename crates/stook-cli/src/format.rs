//! `--format` of `walk`: a text with fields in braces, taken apart once and filled in for every entry.
//!
//! Numbers are written by hand into the buffer of the output: a tree of a million entries has millions of
//! them, and the standard formatter would take as long as half of the system call behind them.

use stook_sys::{FileKind, Metadata, Timestamp};

/// A format, taken apart.
#[derive(Debug)]
pub(crate) struct Format(Vec<Piece>);

#[derive(Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Field(Field),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Path,
    Size,
    Mtime,
    Inode,
    Type,
    Mode,
    Links,
}

const FIELDS: [(&str, Field); 7] = [
    ("path", Field::Path),
    ("size", Field::Size),
    ("mtime", Field::Mtime),
    ("inode", Field::Inode),
    ("type", Field::Type),
    ("mode", Field::Mode),
    ("links", Field::Links),
];

impl Format {
    /// Takes a format apart; two braces stand for one.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(crate) fn parse(format: &[u8]) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut text = Vec::new();
        let mut rest = format;
        while let Some((&byte, tail)) = rest.split_first() {
            let is_doubled = tail.first() == Some(&byte);
            rest = tail;
            match byte {
                b'{' | b'}' if is_doubled => {
                    text.push(byte);
                    rest = &tail[1..];
                }
                b'{' => {
                    let (field, after) = parse_field(tail)?;
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    pieces.push(Piece::Field(field));
                    rest = after;
                }
                b'}' => return Err("a `}` has no `{`; `}}` stands for one".to_owned()),
                _ => text.push(byte),
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        Ok(Self(pieces))
    }

    /// Returns true if the path and the kind alone do not fill it in.
    pub(crate) fn needs_facts(&self) -> bool {
        self.0.iter().any(|piece| {
            !matches!(
                piece,
                Piece::Text(_) | Piece::Field(Field::Path | Field::Type)
            )
        })
    }

    /// Appends one entry.
    pub(crate) fn push(&self, path: &[u8], metadata: &Metadata, out: &mut Vec<u8>) {
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Field(Field::Path) => out.extend_from_slice(path),
                Piece::Field(Field::Size) => push_decimal(metadata.size, out),
                Piece::Field(Field::Mtime) => push_time(metadata.mtime, out),
                Piece::Field(Field::Inode) => push_decimal(metadata.inode, out),
                Piece::Field(Field::Type) => out.push(letter(metadata.kind)),
                Piece::Field(Field::Mode) => push_octal(metadata.mode, out),
                Piece::Field(Field::Links) => push_decimal(metadata.links.into(), out),
            }
        }
    }
}

fn parse_field(after_brace: &[u8]) -> Result<(Field, &[u8]), String> {
    let end = after_brace.iter().position(|&byte| byte == b'}');
    let end = end.ok_or("a `{` has no `}`; `{{` stands for one")?;
    let name = &after_brace[..end];
    let known = FIELDS
        .iter()
        .find(|(field, _)| field.as_bytes() == name)
        .map(|(_, field)| (*field, &after_brace[end + 1..]));
    known.ok_or_else(|| {
        let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
        format!(
            "there is no field `{}`; there are {}",
            stook_sys::display_bytes(name),
            names.join(", ")
        )
    })
}

/// Returns the letter that `find -printf %y` has for a kind.
pub(crate) fn letter(kind: FileKind) -> u8 {
    match kind {
        FileKind::File => b'f',
        FileKind::Directory => b'd',
        FileKind::Symlink => b'l',
        FileKind::Fifo => b'p',
        FileKind::Socket => b's',
        FileKind::CharDevice => b'c',
        FileKind::BlockDevice => b'b',
    }
}

/// Returns seconds since 1970 with nine decimals.
pub(crate) fn time_text(time: Timestamp) -> String {
    let mut text = Vec::new();
    push_time(time, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

fn push_time(time: Timestamp, out: &mut Vec<u8>) {
    let nanoseconds = u64::from(time.nanoseconds);
    let (seconds, fraction) = if time.seconds >= 0 {
        (time.seconds.unsigned_abs(), nanoseconds)
    } else {
        // The nanoseconds count forwards from the whole second before.
        out.push(b'-');
        let (borrow, fraction) = match nanoseconds {
            0 => (0, 0),
            past => (1, 1_000_000_000 - past),
        };
        (time.seconds.unsigned_abs() - borrow, fraction)
    };
    push_decimal(seconds, out);
    out.push(b'.');
    push_digits(fraction, 9, out);
}

fn push_decimal(number: u64, out: &mut Vec<u8>) {
    push_digits(number, 1, out);
}

/// Appends a number with at least so many digits, at most 20.
fn push_digits(mut number: u64, least: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    while number > 0 {
        start -= 1;
        digits[start] += (number % 10) as u8;
        number /= 10;
    }
    let start = start.min(digits.len() - least);
    out.extend_from_slice(&digits[start..]);
}

fn push_octal(mode: u32, out: &mut Vec<u8>) {
    let digits = (32 - mode.leading_zeros()).div_ceil(3).max(1);
    for place in (0..digits).rev() {
        out.push(b'0' + (mode >> (3 * place) & 7) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(format: &str, metadata: &Metadata) -> String {
        let mut out = Vec::new();
        let format = Format::parse(format.as_bytes()).unwrap();
        format.push(b"a/b", metadata, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_are_filled_in_and_the_rest_stays() {
        let mut metadata = Metadata::of_kind(FileKind::File);
        assert_eq!(
            filled(
                "{type} {mode} {size} {mtime} {links} {inode}|{path}",
                &metadata
            ),
            "f 0 0 0.000000000 0 0|a/b"
        );
        metadata.mode = 0o4755;
        metadata.size = u64::MAX;
        metadata.links = 12;
        metadata.inode = 1_000_000_000;
        assert_eq!(
            filled("{{{mode}}} {size}:{links}:{inode}", &metadata),
            "{4755} 18446744073709551615:12:1000000000"
        );
        assert_eq!(filled("", &metadata), "");
        assert_eq!(filled("text", &metadata), "text");
    }

    #[test]
    fn times_have_nine_decimals_on_both_sides_of_1970() {
        let time = |seconds, nanoseconds| {
            time_text(Timestamp {
                seconds,
                nanoseconds,
            })
        };
        assert_eq!(time(1_600_000_000, 123_456_789), "1600000000.123456789");
        assert_eq!(time(0, 7), "0.000000007");
        assert_eq!(time(-1, 0), "-1.000000000");
        assert_eq!(time(-1, 750_000_000), "-0.250000000");
        assert_eq!(time(-2, 250_000_000), "-1.750000000");
        assert_eq!(time(i64::MIN, 0), "-9223372036854775808.000000000");
    }

    #[test]
    fn what_is_no_format_is_explained() {
        let why = |format: &str| Format::parse(format.as_bytes()).unwrap_err();
        assert_eq!(
            why("{name}"),
            "there is no field `name`; there are path, size, mtime, inode, type, mode, links"
        );
        assert_eq!(why("{path"), "a `{` has no `}`; `{{` stands for one");
        assert_eq!(why("path}"), "a `}` has no `{`; `}}` stands for one");
    }

    #[test]
    fn path_and_type_need_no_facts() {
        let needs = |format: &str| Format::parse(format.as_bytes()).unwrap().needs_facts();
        assert!(!needs("{path}") && !needs("{type}\t{path}"));
        assert!(needs("{path} {size}") && needs("{inode}"));
    }
}
