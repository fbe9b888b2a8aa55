//! Why an object store refuses: its code, which says more than the status.
//!
//! Source: Amazon S3 API reference, "Error responses"; codes of MinIO, Ceph and versitygw where they differ.

use reqwest::StatusCode;
use reqwest::header::HeaderMap;

use crate::error::StoreCause;

/// Who speaks, in messages.
const SERVER: &str = "the object store";

/// Returns why the store refused.
pub(super) fn refusal(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> StoreCause {
    let (code, message) = error_of(body).unwrap_or_default();
    if let Some(cause) = known(&code) {
        return cause;
    }
    match status {
        // Another code says that something else is not there: an upload, say.
        StatusCode::NOT_FOUND if code.is_empty() => StoreCause::NotFound,
        StatusCode::UNAUTHORIZED => StoreCause::Login { command: None },
        StatusCode::FORBIDDEN => StoreCause::Denied,
        StatusCode::PRECONDITION_FAILED | StatusCode::CONFLICT => StoreCause::Exists,
        StatusCode::INSUFFICIENT_STORAGE => StoreCause::Full,
        _ => said(&region(headers).unwrap_or_else(|| words(status, &code, &message))),
    }
}

/// Returns why the store refused with an answer that began as a success: it had to begin before it was done.
pub(super) fn refusal_in_success(body: &[u8]) -> Option<StoreCause> {
    let (code, message) = error_of(body)?;
    let cause = known(&code);
    Some(cause.unwrap_or_else(|| said(&words(StatusCode::OK, &code, &message))))
}

fn known(code: &str) -> Option<StoreCause> {
    Some(match code {
        "NoSuchBucket" => StoreCause::NoPlace,
        "NoSuchKey" => StoreCause::NotFound,
        "PreconditionFailed" | "ConditionalRequestConflict" => StoreCause::Exists,
        "ExpiredToken" | "ExpiredTokenException" | "TokenRefreshRequired" | "InvalidToken" => {
            StoreCause::Login { command: None }
        }
        "AccessDenied"
        | "InvalidAccessKeyId"
        | "XAdminUserNotFound"
        | "SignatureDoesNotMatch"
        | "AllAccessDisabled" => StoreCause::Denied,
        "InsufficientStorage" | "QuotaExceeded" | "XMinioStorageFull" => StoreCause::Full,
        _ => return None,
    })
}

fn said(text: &str) -> StoreCause {
    StoreCause::Said {
        program: SERVER.to_owned(),
        text: text.to_owned(),
    }
}

fn words(status: StatusCode, code: &str, message: &str) -> String {
    if code.is_empty() {
        return status.to_string();
    }
    let message = message.lines().next().unwrap_or_default();
    format!("{} {code}: {message}", status.as_u16())
}

/// A bucket of another region than asked for is said to be in it.
fn region(headers: &HeaderMap) -> Option<String> {
    let region = headers.get("x-amz-bucket-region")?.to_str().ok()?;
    Some(format!("the bucket is in the region `{region}`"))
}

/// Returns code and message of an error, if this is one.
fn error_of(body: &[u8]) -> Option<(String, String)> {
    let document = roxmltree::Document::parse(std::str::from_utf8(body).ok()?).ok()?;
    let root = document.root_element();
    if root.tag_name().name() != "Error" {
        return None;
    }
    let text = |name: &str| {
        let node = root.children().find(|node| node.tag_name().name() == name);
        let text = node.and_then(|node| node.text());
        text.unwrap_or_default().to_owned()
    };
    Some((text("Code"), text("Message")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cause(status: u16, body: &str) -> String {
        let status = StatusCode::from_u16(status).unwrap();
        refusal(status, &HeaderMap::new(), body.as_bytes()).to_string()
    }

    #[test]
    fn refusals_have_causes() {
        let error = |code: &str| {
            format!(
                "<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>Why.</Message></Error>"
            )
        };
        for (status, body, expected) in [
            (404, error("NoSuchBucket"), "no such place"),
            (404, error("NoSuchKey"), "no such file"),
            (404, String::new(), "no such file"),
            (400, error("ExpiredToken"), "not logged in"),
            (403, error("SignatureDoesNotMatch"), "access denied"),
            (403, String::new(), "access denied"),
            (
                412,
                error("PreconditionFailed"),
                "somebody else has changed it",
            ),
            (507, String::new(), "the store is full"),
            (
                503,
                error("SlowDown"),
                "the object store says: 503 SlowDown: Why.",
            ),
            (
                502,
                "<html>no XML".to_owned(),
                "the object store says: 502 Bad Gateway",
            ),
        ] {
            assert_eq!(cause(status, &body), expected);
        }
        assert!(refusal_in_success(b"<CompleteMultipartUploadResult/>").is_none());
        let late = refusal_in_success(error("InternalError").as_bytes()).unwrap();
        assert_eq!(
            late.to_string(),
            "the object store says: 200 InternalError: Why."
        );
    }
}
