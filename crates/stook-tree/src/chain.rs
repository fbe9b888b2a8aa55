//! Directories that know the one above them: the way between any of them and what is open.

/// A directory that is linked to the one above it.
pub(crate) trait Link: Sized {
    /// Returns the one above; None at the top.
    fn above(&self) -> Option<&Self>;
    /// Returns its name in there.
    fn name(&self) -> &[u8];
}

/// Returns the first one from `start` upwards that is a base, or the top, and the path from there to `name` in `start`.
///
/// # Cost
/// As many steps as the path has components.
pub(crate) fn way_to<'l, L: Link>(
    start: &'l L,
    name: &[u8],
    is_base: impl Fn(&L) -> bool,
) -> (&'l L, Vec<u8>) {
    let mut names = vec![name];
    let mut link = start;
    while let Some(above) = link.above().filter(|_| !is_base(link)) {
        names.push(link.name());
        link = above;
    }
    names.reverse();
    (link, names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Level(&'static [u8], Option<Box<Level>>);

    impl Link for Level {
        fn above(&self) -> Option<&Self> {
            self.1.as_deref()
        }
        fn name(&self) -> &[u8] {
            self.0
        }
    }

    #[test]
    fn a_way_begins_at_the_nearest_base_or_at_the_top() {
        let top = Level(b"top", None);
        let middle = Level(b"middle", Some(Box::new(top)));
        let start = Level(b"start", Some(Box::new(middle)));
        let from = |base: &'static [u8]| {
            let (found, way) = way_to(&start, b"name", |level: &Level| level.0 == base);
            (found.0, String::from_utf8(way).unwrap())
        };
        assert_eq!(from(b"start"), (&b"start"[..], "name".into()));
        assert_eq!(from(b"middle"), (&b"middle"[..], "start/name".into()));
        for none in [&b"top"[..], b"other"] {
            assert_eq!(from(none), (&b"top"[..], "middle/start/name".into()));
        }
    }
}
