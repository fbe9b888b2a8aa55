//! The before/after study of archivers: what is run, what is compared, and what ends it.

use stook_bench::update::{Caches, Finish, Placement, Tool, UpdateOptions, UpdateStudy};
use stook_bench::{BenchError, Remedy};
use stook_testkit::{TempDir, tree};

use crate::observer::Quiet;

/// Three small directories; `a` and `b` share a name.
fn place() -> TempDir {
    let folder = TempDir::new().unwrap();
    tree! {
        "a/same" => file(b"of a"), "a/d/x" => file(b"1"), "b/same" => file(b"of b!"), "b/link" => symlink("same"),
        "c/d/e/f" => file(b""), "c/empty" => dir(),
    }
    .write(folder.path())
    .unwrap();
    folder
}

fn options(folder: &TempDir, tools: &[&str]) -> UpdateOptions {
    let tools: Vec<String> = tools.iter().map(ToString::to_string).collect();
    UpdateOptions {
        tools: Tool::parse(&tools).unwrap(),
        stook: "stook".into(),
        directories: ["a", "b", "c"].map(|name| folder.join(name)),
        repeats: 1,
        work: None,
        placement: Placement::Over,
        caches: Caches::Hot,
        finish: Finish::Ended,
        store: None,
    }
}

fn study(options: UpdateOptions, quiet: &Quiet) -> Result<u64, BenchError> {
    UpdateStudy::prepare(options, "2026-11-21T10:00:00Z", quiet)?.run(quiet)
}

/// An archiver that copies: right, but for what the test puts behind its `extract`.
fn copier(extract: &str) -> [String; 5] {
    [
        "copier:create=cp -a {source}/. {archive}".to_owned(),
        "copier:update=cp -a {source}/. {archive}".to_owned(),
        format!("copier:extract=cp -a {{archive}}/. {{into}}; {extract}"),
        "copier:list=cd {archive} && find . -mindepth 1".to_owned(),
        "copier:check=".to_owned(),
    ]
}

/// As [`options`], for texts that a test has made.
fn with(folder: &TempDir, texts: &[String]) -> UpdateOptions {
    options(
        folder,
        &texts.iter().map(String::as_str).collect::<Vec<_>>(),
    )
}

fn run_copier(folder: &TempDir, extract: &str, quiet: &Quiet) -> Result<u64, BenchError> {
    study(with(folder, &copier(extract)), quiet)
}

#[test]
fn all_pairs_and_operations_come_in_order() {
    let (folder, quiet) = (place(), Quiet::default());
    assert_eq!(run_copier(&folder, "true", &quiet).unwrap(), 0);
    let samples = quiet.samples.lock().unwrap();
    let shown: Vec<String> = samples
        .iter()
        .map(|sample| {
            ["create", "update", "operation"]
                .map(|name| sample.label(name))
                .join(" ")
        })
        .collect();
    let pairs = ["a b", "a c", "b a", "b c", "c a", "c b"];
    let expected: Vec<String> = pairs
        .iter()
        .flat_map(|pair| {
            ["create", "update", "extract_seq"].map(|operation| format!("{pair} {operation}"))
        })
        .collect();
    assert_eq!(shown, expected);
    // Sizes of a, of b, and of both with the one that replaces the other.
    let handled: Vec<_> = samples[..3]
        .iter()
        .map(|sample| (sample.files, sample.bytes))
        .collect();
    assert_eq!(
        handled,
        [(Some(2), Some(5)), (Some(1), Some(5)), (Some(2), Some(6))]
    );
    assert_eq!(samples[2].proof["equal"], true);
    assert_eq!(samples[2].proof["list_equal"], true);
    let mut left: Vec<_> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["a", "b", "c"]);
}

#[test]
fn what_a_tool_loses_or_makes_up_is_found() {
    let (folder, quiet) = (place(), Quiet::default());
    // Only the pairs of a and b have `same`, and only those with c have `d/e/f`.
    let unequal = run_copier(&folder, "rm -f {into}/d/e/f; touch {into}/d/new", &quiet).unwrap();
    let warnings = quiet.warnings.lock().unwrap();
    assert_eq!((unequal, warnings.len()), (6, 6));
    assert_eq!(
        warnings[0],
        "round 1, a -> b, copier, extract_seq: the extracted tree is not the same as the source: \
         0 missing, 1 extra, 0 changed, such as `d/new`"
    );
    assert!(
        warnings[1].ends_with("1 missing, 1 extra, 0 changed, such as `d/e/f`"),
        "{warnings:?}"
    );
}

#[test]
fn a_list_that_lacks_a_name_is_found() {
    let (folder, quiet) = (place(), Quiet::default());
    let mut texts = copier("true");
    texts[3] = "copier:list=cd {archive} && find . -mindepth 1 -not -name same".to_owned();
    assert_eq!(study(with(&folder, &texts), &quiet).unwrap(), 6);
    let warnings = quiet.warnings.lock().unwrap();
    assert!(warnings[0].ends_with("list: the list is not the same as the source: 1 missing, 0 extra, 0 changed, such as `same`"));
}

#[test]
fn a_tool_that_changes_its_source_ends_the_study() {
    let (folder, quiet) = (place(), Quiet::default());
    let mut texts = copier("true");
    texts[1] = "copier:update=touch {source}/new".to_owned();
    let error = study(with(&folder, &texts), &quiet)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with("changed the source in round 1, a -> b, copier, update"),
        "{error}"
    );
}

#[test]
fn a_command_that_fails_is_named_and_nothing_stays() {
    let (folder, quiet) = (place(), Quiet::default());
    let error = run_copier(&folder, "echo no such thing >&2; exit 3", &quiet)
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with(
            "failed in round 1, a -> b, copier, extract_seq: exit status 3\n  no such thing"
        ),
        "{error}"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn an_end_leaves_nothing() {
    let (folder, quiet) = (place(), Quiet::stopped());
    let error = run_copier(&folder, "true", &quiet).unwrap_err();
    assert!(matches!(error, BenchError::Interrupted), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn side_by_side_nothing_is_replaced() {
    let (folder, quiet) = (place(), Quiet::default());
    let options = UpdateOptions {
        placement: Placement::Beside,
        ..with(&folder, &copier("true"))
    };
    assert_eq!(study(options, &quiet).unwrap(), 0);
    assert_eq!(quiet.samples.lock().unwrap()[2].files, Some(3));
}

#[test]
fn a_tool_that_is_not_installed_is_reported_before_anything_is_done() {
    let (folder, quiet) = (place(), Quiet::default());
    let options = UpdateOptions {
        stook: "/no/such/stook".into(),
        ..options(&folder, &["stook"])
    };
    let error = study(options, &quiet).unwrap_err();
    let remedy = Remedy::InstallOrGiveCommand("stook".to_owned());
    assert!(matches!(error, BenchError::Missing { remedy: found, .. } if found == remedy));
}

#[test]
fn gnu_tar_gives_back_what_it_got() {
    let quiet = Quiet::default();
    let folder = place();
    let options = UpdateOptions {
        finish: Finish::OnDisk,
        ..options(&folder, &["tar"])
    };
    let found = study(options, &quiet);
    match found {
        Err(BenchError::Missing { what, .. }) => stook_testkit::skip!("{what}"),
        other => assert_eq!(other.unwrap(), 0, "{:?}", quiet.warnings),
    }
}
