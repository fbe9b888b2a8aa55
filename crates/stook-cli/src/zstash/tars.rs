//! The option `--tars` of `extract` and `check`: numbers of volumes, ranges of them, and patterns.

use stook_archive::VolumeId;

use super::argparse::repr;
use super::error::FrontError;
use super::glob::Glob;

/// Which volumes are meant.
#[derive(Debug)]
pub(crate) struct Tars(Vec<Choice>);

#[derive(Debug)]
enum Choice {
    Range(i128, i128),
    Matching(Glob),
}

impl Tars {
    /// # Errors
    /// As in Python, if the end of a range is no hexadecimal number.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, FrontError> {
        let parts = text.split(|&byte| byte == b',');
        Ok(Self(parts.map(parse_part).collect::<Result<_, _>>()?))
    }

    pub(crate) fn matches(&self, volume: VolumeId) -> bool {
        let number = i128::from(volume.0);
        self.0.iter().any(|part| match part {
            Choice::Range(first, last) => (*first..=*last).contains(&number),
            Choice::Matching(glob) => glob.matches(volume.to_string().as_bytes()),
        })
    }
}

/// Quotes may have come through a shell; a range without an end is open there.
fn parse_part(part: &[u8]) -> Result<Choice, FrontError> {
    let part = part.strip_prefix(b"\"").unwrap_or(part);
    let part = part.strip_suffix(b"\"").unwrap_or(part);
    let Some(dash) = part.iter().rposition(|&byte| byte == b'-') else {
        let name = [without_suffix(part), b".tar"].concat();
        return Ok(Choice::Matching(Glob::new(&name)));
    };
    let (first, last) = (&part[..dash], &part[dash + 1..]);
    Ok(match (first, last) {
        (b"", b"") => return Err(no_number(b"")),
        (b"", last) => Choice::Range(0, number(last)?),
        (first, b"") => Choice::Range(number(first)?, i128::MAX),
        (first, last) => Choice::Range(number(first)?, number(last)?),
    })
}

fn without_suffix(name: &[u8]) -> &[u8] {
    name.strip_suffix(b".tar").unwrap_or(name)
}

fn number(digits: &[u8]) -> Result<i128, FrontError> {
    let digits = without_suffix(digits);
    let text = std::str::from_utf8(digits).unwrap_or("-");
    let text = text.trim();
    let text = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .unwrap_or(text);
    i128::from_str_radix(text, 16).map_err(|_not_hexadecimal| no_number(digits))
}

fn no_number(digits: &[u8]) -> FrontError {
    let text = format!("invalid literal for int() with base 16: {}", repr(digits));
    FrontError::raised("ValueError", text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_are_chosen_as_by_zstash() {
        for (text, expected) in [
            ("000001", &[1][..]),
            ("000001.tar", &[1]),
            ("1", &[]),
            ("1-2", &[1, 2]),
            ("00001-2.tar", &[1, 2]),
            ("-000001", &[0, 1]),
            ("000002-", &[2, 3, 10]),
            ("\"000002-\"", &[2, 3, 10]),
            ("000000,00000a", &[0, 10]),
            ("3-1", &[]),
            ("00000[012]", &[0, 1, 2]),
            ("9-F", &[10]),
        ] {
            let tars = Tars::parse(text.as_bytes()).unwrap();
            let found: Vec<u64> = [0, 1, 2, 3, 10]
                .into_iter()
                .filter(|&number| tars.matches(VolumeId::plain(number)))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
        let error = Tars::parse(b"x-1").unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid literal for int() with base 16: 'x'"
        );
    }
}
