//! Redirects: followed on the same server, refused to any other. What an archive holds is taken from the place that was
//! named, and credentials go nowhere else.

use reqwest::header::LOCATION;
use reqwest::{Response, Url};

use crate::error::StoreCause;
use crate::http::answer;

/// Returns where an answer redirects; None if it does not.
///
/// # Errors
/// `Redirect` to another server, or from `https` to `http`; `Said` if it does not say where to.
pub(super) fn target(url: &Url, response: &Response) -> Result<Option<Url>, StoreCause> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = answer::text(response, &LOCATION);
    let Some(target) = location.and_then(|location| url.join(location).ok()) else {
        return Err(answer::odd(url, "it redirects, and does not say where to"));
    };
    if is_same_server(url, &target) {
        return Ok(Some(target));
    }
    Err(StoreCause::Redirect(target.origin().ascii_serialization()))
}

/// The same host, by the same protocol or by a safer one.
fn is_same_server(from: &Url, to: &Url) -> bool {
    let is_upgrade = (from.scheme(), to.scheme()) == ("http", "https")
        && from.host() == to.host()
        && to.port().is_none();
    from.origin() == to.origin() || is_upgrade
}
