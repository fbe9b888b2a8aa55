//! Patterns: Python's `fnmatch.fnmatchcase` is the reference, one interpreter for all pairs of a test.

use std::io::{self, ErrorKind, Write};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use stook_testkit::Random;
use stook_tree::{Filter, Pattern};

/// Reads lines `PATTERN NAME NAME ...` in hex and prints a line of 0 and 1 for each. A trailing slash
/// stands for all below, which is zstash's addition and not fnmatch's.
const JUDGE: &str = r"
import sys, fnmatch
for line in sys.stdin:
    pattern, *names = [bytes.fromhex(x[1:]).decode('utf-8', 'surrogateescape') for x in line.split()]
    if pattern.endswith('/'):
        pattern += '*'
    print(''.join('01'[fnmatch.fnmatchcase(name, pattern)] for name in names))
";

/// What patterns and names are made of: everything with a meaning, what Python's regular expressions
/// treat in a special way, two to four bytes a character, and bytes that are no UTF-8.
const PIECES: &[&[u8]] = &[
    b"*",
    b"?",
    b"[",
    b"]",
    b"!",
    b"-",
    b"\\",
    b"^",
    b"&",
    b"|",
    b"~",
    b"/",
    b".",
    b"(",
    b"$",
    b"+",
    b"\n",
    b"a",
    b"b",
    b"c",
    b"x",
    b"A",
    b"0",
    "é".as_bytes(),
    "日".as_bytes(),
    "🌾".as_bytes(),
    b"\xff",
    b"\xc3",
    b"\xe6\x97",
    b"\xed\xa0\x80",
];

struct Case {
    pattern: Vec<u8>,
    names: Vec<Vec<u8>>,
}

/// Returns what Python says to every name of every case; None if there is no Python.
fn judge(cases: &[Case]) -> io::Result<Option<Vec<Vec<bool>>>> {
    let child = Command::new("python3")
        .args(["-I", "-W", "ignore", "-c", JUDGE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut child = match child {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    let mut input = Vec::new();
    for case in cases {
        for text in std::iter::once(&case.pattern).chain(&case.names) {
            input.push(b'x');
            for byte in text {
                write!(input, "{byte:02x}")?;
            }
            input.push(b' ');
        }
        input.push(b'\n');
    }
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output()?;
    assert!(output.status.success(), "python3 failed");
    writer.join().unwrap()?;
    let lines = output.stdout.split(|&byte| byte == b'\n');
    let answers = lines.filter(|line| !line.is_empty());
    Ok(Some(
        answers
            .map(|line| line.iter().map(|&byte| byte == b'1').collect())
            .collect(),
    ))
}

/// Compares all cases with Python; returns how many pairs there were and how many of them match.
fn compare(cases: &[Case]) -> Option<(usize, usize)> {
    let Some(answers) = judge(cases).unwrap() else {
        stook_testkit::skip!("there is no python3");
        return None;
    };
    assert_eq!(answers.len(), cases.len());
    let (mut pairs, mut matching) = (0, 0);
    for (case, answers) in cases.iter().zip(&answers) {
        assert_eq!(case.names.len(), answers.len());
        let pattern = Pattern::zstash(&case.pattern);
        for (name, &expected) in case.names.iter().zip(answers) {
            assert_eq!(
                pattern.matches(name),
                expected,
                "pattern {}, name {}",
                case.pattern.escape_ascii(),
                name.escape_ascii()
            );
            pairs += 1;
            matching += usize::from(expected);
        }
    }
    Some((pairs, matching))
}

fn text(random: &mut Random, most: usize) -> Vec<u8> {
    let len = random.index(most + 1);
    let pieces = (0..len).map(|_| PIECES[random.index(PIECES.len())]);
    pieces.collect::<Vec<_>>().concat()
}

/// A name made from a pattern, so that many match: stars and question marks are filled, some pieces change.
fn name_like(pattern: &[u8], random: &mut Random) -> Vec<u8> {
    let mut name = Vec::new();
    for &byte in pattern {
        match byte {
            b'*' => name.extend(text(random, 3)),
            b'?' => name.extend_from_slice(PIECES[random.index(PIECES.len())]),
            _ if random.below(30) == 0 => name.extend(text(random, 1)),
            _ => name.push(byte),
        }
    }
    name
}

#[test]
fn random_patterns_match_what_python_matches() {
    let mut random = Random::new(4);
    let cases: Vec<Case> = (0..3000)
        .map(|_| {
            let pattern = text(&mut random, 9);
            let mut names: Vec<_> = (0..7).map(|_| name_like(&pattern, &mut random)).collect();
            names.extend((0..3).map(|_| text(&mut random, 6)));
            Case { pattern, names }
        })
        .collect();
    if let Some((pairs, matching)) = compare(&cases) {
        assert!(pairs == 30_000 && matching > 5_000, "{matching} of {pairs}");
    }
}

#[test]
fn random_sets_match_what_python_matches() {
    let characters: Vec<Vec<u8>> = PIECES.iter().map(|piece| piece.to_vec()).collect();
    // Dense in ranges, in empty ranges and in what may stand at the start of a set.
    let inner: &[&[u8]] = &[
        b"-",
        b"-",
        b"-",
        b"!",
        b"]",
        b"[",
        b"^",
        b"\\",
        b"a",
        b"b",
        b"c",
        b"x",
        b"A",
        b"0",
        b"&",
        "é".as_bytes(),
        "日".as_bytes(),
        b"\xff",
    ];
    let mut random = Random::new(5);
    let cases: Vec<Case> = (0..3000)
        .map(|_| {
            let len = random.index(9);
            let inside: Vec<_> = (0..len).map(|_| inner[random.index(inner.len())]).collect();
            Case {
                pattern: [b"[", inside.concat().as_slice(), b"]"].concat(),
                names: characters.clone(),
            }
        })
        .collect();
    if let Some((pairs, matching)) = compare(&cases) {
        assert!(pairs == 90_000 && matching > 5_000, "{matching} of {pairs}");
    }
}

#[test]
fn patterns_of_users_match_what_python_matches() {
    let patterns = [
        "archive/rest/???[!05]-*/",
        "*.nc",
        "run/",
        "run",
        "./run/*",
        "build/*.o",
        "*/tmp/*",
        "[0-9]*",
        "*[!a-z]",
        "*.h[0-4].*",
        "",
        "*",
        "/",
        "**",
    ];
    let names = [
        "archive/rest/0001-01-01/a",
        "archive/rest/0005-01-01/a",
        "archive/rest/0001-01-01",
        "x.nc",
        "a/b/x.nc",
        "x.nc.bak",
        "run",
        "run/",
        "run/x/y",
        "runs/x",
        "build/x/y.o",
        "a/tmp/b",
        "tmp/b",
        "7up",
        "case.eam.h0.0001-01.nc",
        "",
        "/",
        "/x",
        "line\nbreak",
    ];
    let names: Vec<Vec<u8>> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
    let cases: Vec<Case> = patterns
        .iter()
        .map(|pattern| Case {
            pattern: pattern.as_bytes().to_vec(),
            names: names.clone(),
        })
        .collect();
    if let Some((_, matching)) = compare(&cases) {
        assert!(matching > 40);
    }
}

/// A matcher that goes back to every star would take 10^16 steps for this, and never come back.
#[test]
fn many_stars_cost_no_more_than_length_times_elements() {
    let path = vec![b'a'; 10_000];
    assert!(!Pattern::new(b"*a*a*a*a*b").matches(&path));
    assert!(Pattern::new(b"*a*a*a*a*a").matches(&path));
    let stars = [b"*a".repeat(500), b"b".to_vec()].concat();
    assert!(!Pattern::new(&stars).matches(&path));
    let sets = [b"*[ab]".repeat(100), b"[!a]".to_vec()].concat();
    assert!(!Pattern::new(&sets).matches(&path));
}

#[test]
fn excluding_what_is_in_subdirectories_keeps_the_files_of_the_root() {
    for pattern in ["*/*", "/", "?*/*"] {
        let filter = Filter {
            exclude: vec![Pattern::new(pattern.as_bytes())],
            ..Filter::default()
        };
        assert!(!filter.prunes(b""), "{pattern}");
        assert!(filter.selects(b"top"), "{pattern}");
    }
}

const ENDINGS: &[&[u8]] = &[b"", b"*", b"/", b"/*", b"*/*", b"?*"];

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(PIECES).prop_map(<[u8]>::to_vec)
}

fn joined(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(piece(), len).prop_map(|pieces| pieces.concat())
}

/// A path of an entry: names with single slashes in between.
fn paths() -> impl Strategy<Value = Vec<u8>> {
    let name = joined(1..4).prop_filter("a name has no slash", |name| {
        !name.contains(&b'/') && ![&b"."[..], b".."].contains(&&name[..])
    });
    prop::collection::vec(name, 1..5).prop_map(|names| names.join(&b'/'))
}

/// Returns true if neither `./` nor slashes are taken off the pattern's ends.
fn is_plain(text: &[u8]) -> bool {
    let is_spelled_otherwise = text.is_empty()
        || text == b"."
        || text.starts_with(b"./")
        || text.starts_with(b"/")
        || text.ends_with(b"/")
        || text.ends_with(b"/.");
    !is_spelled_otherwise
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    /// The directory may be the root, which is the empty path.
    #[test]
    fn a_directory_is_only_pruned_if_all_below_it_matches(
        pattern in joined(0..4),
        ending in prop::sample::select(ENDINGS),
        directory in joined(0..4),
        below in joined(1..5),
    ) {
        let pattern = Pattern::new(&[&pattern[..], ending].concat());
        if pattern.matches_all_below(&directory) {
            let path = if directory.is_empty() { below } else { [&directory[..], b"/", &below].concat() };
            prop_assert!(pattern.matches(&path));
        }
    }

    /// The shortcut is worth having only if it sees the usual cases.
    #[test]
    fn a_pattern_of_a_directory_prunes_it_and_all_below(directory in "[a-z]{1,8}(/[a-z]{1,8}){0,3}", below in "[a-z]{1,8}") {
        for ending in ["/", "/*"] {
            let pattern = Pattern::new(format!("{directory}{ending}").as_bytes());
            prop_assert!(pattern.matches_all_below(directory.as_bytes()));
            let deeper = format!("{directory}/{below}");
            prop_assert!(pattern.matches_all_below(deeper.as_bytes()));
            prop_assert!(!pattern.matches_all_below(b""));
        }
    }

    /// The definition: the glob, or the very text, matches the path or one above it.
    #[test]
    fn a_pattern_matches_what_it_matches_or_what_is_above(
        pattern in joined(1..6),
        path in paths(),
        is_prefix: bool,
        ending in prop::sample::select(ENDINGS),
    ) {
        // Half of the patterns are made from the path, so that many match.
        let text = if is_prefix { [&path[..path.len() / 2], ending].concat() } else { pattern };
        prop_assume!(is_plain(&text));
        let (found, glob) = (Pattern::new(&text), Pattern::zstash(&text));
        let is_match = |path: &[u8]| path == text || glob.matches(path);
        let ends = (0..path.len()).filter(|&at| path[at] == b'/').chain([path.len()]);
        let expected = ends.clone().any(|end| is_match(&path[..end]));
        prop_assert_eq!(found.matches(&path), expected, "{} {}", text.escape_ascii(), path.escape_ascii());
        for end in ends {
            let directory = &path[..end];
            if directory.len() < path.len() && found.matches(&path) && !found.matches(directory) {
                prop_assert!(found.may_match_below(directory), "{} {}", text.escape_ascii(), path.escape_ascii());
            }
            if found.matches_all_below(directory) {
                prop_assert!(found.matches(&path) || directory.len() == path.len());
            }
        }
        prop_assert!(!found.matches(&path) || found.matches(b"") || found.may_match_below(b""));
    }

    #[test]
    fn any_bytes_are_a_pattern_and_a_path(pattern: Vec<u8>, path: Vec<u8>) {
        let pattern = Pattern::new(&pattern);
        let _ = (pattern.matches(&path), pattern.matches_all_below(&path));
        prop_assert!(Pattern::new(b"*").matches(&path));
    }
}
