//! Parts of files: whether an answer has the bytes that were asked for.
//!
//! Source: RFC 9110, section 14.

use reqwest::header::CONTENT_RANGE;
use reqwest::{Response, Url};

use crate::error::StoreCause;
use crate::http::answer;

/// # Errors
/// `Changed` if the file has another size; `Said` if the answer has other bytes.
pub(super) fn require(
    url: &Url,
    response: &Response,
    first: u64,
    last: u64,
    size: u64,
) -> Result<(), StoreCause> {
    let found = answer::text(response, &CONTENT_RANGE).and_then(parse);
    let Some((found_first, found_last, total)) = found else {
        return Err(answer::odd(url, "it does not say which bytes it sends"));
    };
    if total.is_some_and(|total| total != size) {
        return Err(StoreCause::Changed);
    }
    if (found_first, found_last) != (first, last) {
        return Err(answer::odd(url, "it sends other bytes than asked for"));
    }
    Ok(())
}

/// Reads `bytes 0-9/100`, or with `*` for an unknown total.
fn parse(text: &str) -> Option<(u64, u64, Option<u64>)> {
    let (range, total) = text.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let total = match total {
        "*" => None,
        number => Some(number.parse().ok()?),
    };
    Some((first.parse().ok()?, last.parse().ok()?, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_read() {
        assert_eq!(parse("bytes 0-9/100"), Some((0, 9, Some(100))));
        assert_eq!(parse("bytes 5-5/*"), Some((5, 5, None)));
        for bad in ["bytes */100", "0-9/100", "bytes 0-9", "bytes a-9/100", ""] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
