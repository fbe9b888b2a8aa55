//! Which names of members are refused.

use crate::cause::Cause;
use crate::survey::LONGEST_PATH;

/// Returns the path without `.` and empty components, or why it cannot be trusted.
pub(crate) fn safe_path(name: &[u8]) -> Result<Vec<u8>, Cause> {
    if name.starts_with(b"/") {
        return Err(Cause::AbsolutePath);
    }
    if name.len() > LONGEST_PATH {
        return Err(Cause::PathTooLong);
    }
    if is_plain(name) {
        return Ok(name.to_vec());
    }
    let components = name
        .split(|&byte| byte == b'/')
        .filter(|component| !matches!(component, [] | [b'.']));
    let components: Vec<&[u8]> = components.collect();
    if components.contains(&&b".."[..]) {
        return Err(Cause::OutsideTarget);
    }
    if components.is_empty() {
        return Err(Cause::NoName);
    }
    Ok(components.join(&b'/'))
}

/// Returns true if no component is empty or begins with a dot: a long name is not taken apart then.
fn is_plain(name: &[u8]) -> bool {
    let ends = !name.is_empty() && !name.starts_with(b".") && !name.ends_with(b"/");
    let is_odd = |pair: &[u8]| pair[0] == b'/' && matches!(pair[1], b'/' | b'.');
    ends && !name.windows(2).any(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_outside_are_refused() {
        for name in ["/etc/passwd", "..", "a/../../b", "../a", "a/.."] {
            assert!(safe_path(name.as_bytes()).is_err(), "{name}");
        }
        for empty in ["", ".", "./", "././"] {
            assert!(matches!(safe_path(empty.as_bytes()), Err(Cause::NoName)));
        }
        assert_eq!(safe_path(b"./a//b/./c").unwrap(), b"a/b/c");
        assert_eq!(safe_path(b"a..b/...").unwrap(), b"a..b/...");
    }
}
