//! What an answer of a web server says of a file, and why there is none.

use reqwest::header::{CONTENT_LENGTH, ETAG, HeaderName, LAST_MODIFIED, TRANSFER_ENCODING};
use reqwest::{Response, StatusCode, Url};

use crate::error::{Difference, StoreCause};
use crate::store::FileVersion;

/// Returns what is odd about an answer.
pub(super) fn odd(url: &Url, text: &str) -> StoreCause {
    StoreCause::Answer {
        program: url.host_str().unwrap_or_default().to_owned(),
        text: text.to_owned(),
    }
}

/// # Errors
/// Unless the answer has the file, or a part of it.
pub(super) fn require_success(url: &Url, response: &Response) -> Result<(), StoreCause> {
    let status = response.status();
    match status {
        StatusCode::OK | StatusCode::PARTIAL_CONTENT => Ok(()),
        StatusCode::NOT_FOUND | StatusCode::GONE => Err(StoreCause::NotFound),
        StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
            Err(StoreCause::Login { command: None })
        }
        StatusCode::FORBIDDEN => Err(StoreCause::Denied),
        _ => Err(StoreCause::Said {
            program: url.host_str().unwrap_or_default().to_owned(),
            text: status.to_string(),
        }),
    }
}

/// Returns the version that an answer is of: its entity tag if that promises equal bytes, else when it was modified.
pub(super) fn version(response: &Response) -> Option<FileVersion> {
    let tag = text(response, &ETAG).filter(|tag| tag.starts_with('"'));
    let version = tag.or_else(|| text(response, &LAST_MODIFIED))?;
    Some(FileVersion(version.to_owned()))
}

/// Returns the length of the whole file, from an answer that is not about a part.
pub(super) fn whole_size(response: &Response) -> Option<u64> {
    text(response, &CONTENT_LENGTH)?.parse().ok()
}

/// Returns `size` if the answer came in pieces that say which is the last: then all of it is there.
pub(super) fn end_is_known(response: &Response, size: u64) -> Option<u64> {
    let encoding = text(response, &TRANSFER_ENCODING)?;
    encoding.ends_with("chunked").then_some(size)
}

/// # Errors
/// `Different` if it is another size; `NoSize` if nobody knows which it should be.
pub(super) fn require_size(found: u64, expected: Option<u64>) -> Result<(), StoreCause> {
    let expected = expected.ok_or(StoreCause::NoSize)?;
    if found != expected {
        return Err(StoreCause::Different(Difference::Size { expected, found }));
    }
    Ok(())
}

pub(super) fn text<'a>(response: &'a Response, name: &HeaderName) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}
