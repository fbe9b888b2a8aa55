//! `stook bench report`: from files of results to a page and figures, and what a browser makes of the page.

mod browser;
pub(crate) mod specimen;

use insta::assert_snapshot;
use stook_bench::{Kind, report};

use crate::bad_input::refused;
use crate::place::Place;
use specimen::{ODD, bare, cache, fs, lines, update};

pub(crate) const DAY: &str = "2026-11-21T10:00:00Z";

/// A place with one file of results of each kind.
fn measured() -> Place {
    let place = Place::new();
    place.write(
        "fs.jsonl",
        lines(&fs(&["/scratch", "/nfs/home"], 3, DAY, 1)),
    );
    place.write("cache.jsonl", lines(&cache(3, false, DAY, 2)));
    place.write("update.jsonl", lines(&update(&["stook", "tar"], 2, DAY, 3)));
    place
}

fn text(place: &Place, name: &str) -> String {
    std::fs::read_to_string(place.path(name)).unwrap()
}

#[test]
fn results_become_a_page_and_figures() {
    let place = measured();
    let arguments = [
        "bench",
        "report",
        "fs.jsonl",
        "cache.jsonl",
        "update.jsonl",
        "-o",
        "report.html",
        "--figures",
        "out/figures",
    ];
    assert_snapshot!(place.stderr(&arguments), @"wrote `report.html` about 3 runs, and 11 figures into `out/figures`");
    let page = text(&place, "report.html");
    for id in ["id=\"run-1\"", "id=\"run-2\"", "id=\"run-3\""] {
        assert!(page.contains(id), "{id}");
    }
    let figures = place.names("out/figures");
    assert_eq!(figures.len(), 11);
    assert!(figures.iter().all(|name| name.ends_with(".svg")));
    for name in [
        "1-time-system.svg",
        "1-latency-untar-create.svg",
        "2-states.svg",
        "3-time.svg",
        "3-scatter-tar.svg",
        "3-memory.svg",
    ] {
        assert!(
            figures.iter().any(|figure| figure == name),
            "{name} is not among {figures:?}"
        );
    }
    // Made anew, it is the same.
    place.stderr(&arguments);
    assert_eq!(
        (text(&place, "report.html"), place.names("out/figures")),
        (page, figures)
    );
}

#[test]
fn one_run_has_figures_without_numbers_and_json_tells_what_was_made() {
    let place = measured();
    let made = place.json(&[
        "bench",
        "report",
        "cache.jsonl",
        "-o",
        "a.html",
        "--figures",
        "f",
        "--json",
    ]);
    assert_eq!(
        (&made[0]["runs"], &made[0]["figures"]),
        (&1.into(), &1.into())
    );
    assert_eq!(place.names("f"), ["states.svg"]);
    assert_eq!(
        place.names("."),
        ["a.html", "cache.jsonl", "f", "fs.jsonl", "update.jsonl"]
    );
}

#[test]
fn what_the_figures_say_is_said_in_words() {
    let page = report::page(&[cache(5, true, DAY, 2)]);
    assert!(
        page.contains("cold takes") && page.contains("as long as hot"),
        "{page}"
    );
    assert!(page.contains("BLOCKED is"));
    let page = report::page(&[update(&["tar", "stook"], 2, DAY, 3)]);
    assert!(
        page.contains("<code>update</code>: stook takes")
            && page.contains("the time of tar, the geometric mean over 6 pairs, from")
    );
    assert!(page.contains("At its peak stook holds, as a multiple of the memory of tar,"));
    let page = report::page(&[fs(&["/fast", "/slow"], 2, DAY, 1)]);
    assert!(page.contains("as long on <code>/slow</code> as on <code>/fast</code>"));
    assert!(page.contains("As a multiple of the time of system, stook takes"));
}

#[test]
fn runs_of_one_kind_stand_side_by_side() {
    let (first, second) = (
        fs(&["/a", "/b"], 2, DAY, 1),
        fs(&["/b", "/c"], 2, "2026-12-01T09:00:00Z", 5),
    );
    let page = report::page(&[first.clone(), second]);
    let (_, side) = page.split_once("id=\"side-by-side\"").unwrap();
    let (side, _) = side.split_once("</section>").unwrap();
    assert!(
        side.contains("run 2 / run 1") && side.contains("<td>/b</td>"),
        "{side}"
    );
    assert!(!side.contains("<td>/a</td>") && !side.contains("<td>/c</td>"));
    assert!(!report::page(&[first, cache(1, false, DAY, 1)]).contains("id=\"side-by-side\""));
}

#[test]
fn names_do_not_become_markup_and_nothing_is_fetched() {
    let page = report::page(&[fs(&ODD, 1, DAY, 1), update(&ODD, 1, DAY, 1)]);
    assert!(!page.contains("<script>alert"));
    assert_eq!(
        page.matches("<script").count(),
        page.matches("</script>").count()
    );
    let outside = page.replace("http://www.w3.org/2000/svg", "");
    for address in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!outside.contains(address), "{address}");
    }
}

#[test]
fn what_is_missing_or_zero_does_no_harm() {
    for kind in [Kind::Fs, Kind::Cache, Kind::Update] {
        let mut results = bare(kind);
        for _ in 0..2 {
            let page = report::page(std::slice::from_ref(&results));
            assert!(!page.contains("NaN") && !page.contains(">inf"), "{page}");
            for figure in report::figures(std::slice::from_ref(&results)) {
                let drawn = figure.svg();
                assert!(
                    !drawn.contains("NaN") && !drawn.contains("inf\""),
                    "{drawn}"
                );
            }
            results.samples.clear();
        }
    }
}

#[test]
fn only_a_page_is_replaced() {
    let place = measured();
    assert_snapshot!(refused(&place, &["bench", "report", "fs.jsonl", "-o", "cache.jsonl"]), @r"
    status 1
    error: cannot replace `cache.jsonl`: it is not a page that stook made
    hint: name another file, or remove it first
    ");
    place.write("bytes", [0xff, 0xfe]);
    assert_snapshot!(refused(&place, &["bench", "report", "fs.jsonl", "-o", "bytes"]), @r"
    status 1
    error: cannot replace `bytes`: it is not a page that stook made
    hint: name another file, or remove it first
    ");
    assert_snapshot!(refused(&place, &["bench", "report", "fs.jsonl", "-o", "."]), @r"
    status 1
    error: cannot open `.`: it is not a regular file
    ");
    assert_snapshot!(refused(&place, &["bench", "report", "fs.jsonl", "-o", "gone/report.html"]), @r"
    status 1
    error: cannot look at `gone`: no such file or directory
    ");
    assert_snapshot!(refused(&place, &["bench", "report", "fs.jsonl"]), @r"
    status 2
    error: the following required arguments were not provided: --output <FILE>
    hint: `--help` shows the options
    ");
}

/// Nobody may read the directory that the page is in, so its name cannot be synced.
#[test]
fn a_page_is_written_where_names_can_only_be_made() {
    let place = measured();
    std::fs::create_dir(place.path("out")).unwrap();
    place.write("out/report.html", "");
    place.set_mode("out/report.html", 0o666);
    place.set_mode("out", 0o333);
    let arguments = ["bench", "report", "fs.jsonl", "-o", "out/report.html"];
    let ran = place.run_as_nobody(&arguments);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    place.set_mode("out", 0o755);
    assert!(text(&place, "out/report.html").contains("id=\"run-1\""));
    assert_eq!(place.names("out"), ["report.html"]);
}

#[test]
fn results_that_cannot_be_read_are_told() {
    let place = measured();
    place.write("empty", "");
    place.write(
        "newer",
        "{\"type\":\"header\",\"format\":99,\"kind\":\"fs\"}\n",
    );
    let damaged = text(&place, "fs.jsonl").replacen("\"round\":1", "\"round\":", 1);
    place.write("damaged", damaged);
    let told = |name| {
        refused(
            &place,
            &["bench", "report", "fs.jsonl", name, "-o", "report.html"],
        )
    };
    assert_snapshot!(told("gone"), @r"
    status 1
    error: cannot open `gone`: no such file or directory
    ");
    assert_snapshot!(told("empty"), @r"
    status 1
    error: cannot read `empty`, line 1: it holds no results
    ");
    assert_snapshot!(told("newer"), @r"
    status 1
    error: cannot read `newer`: its format is 99, and this version knows up to 1
    hint: use the version of stook that wrote it, or a newer one
    ");
    assert_snapshot!(told("damaged"), @r"
    status 1
    error: cannot read `damaged`, line 2: expected value
    ");
}
