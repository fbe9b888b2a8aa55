//! The page in a real browser: charts are there, nothing is complained of, nothing sticks out on a phone.
//!
//! A copy of the page gets a script at its end that looks at it and tells what it saw. The copy stands in a frame as wide as
//! the window is to be, as the browser itself is never narrower than 500 pixels; the page around it writes what it hears
//! into itself, and the browser prints that.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use stook_bench::{Kind, report};
use stook_testkit::TempDir;

use super::DAY;
use super::specimen::{ODD, bare, cache, fs, lines, update};

/// Tells the page around it what it sees.
const PROBE: &str = r#"
addEventListener("load", () => {
  const drawn = [...document.querySelectorAll("svg")].filter(svg => svg.getBoundingClientRect().width > 0);
  const outside = [...document.querySelectorAll("main *")].filter(e => !e.closest(".scroll") || e.matches(".scroll"))
    .filter(e => !e.closest("svg")).filter(e => e.getBoundingClientRect().right > document.documentElement.clientWidth + 1);
  let raw = null;
  URL.createObjectURL = blob => { raw = blob; return "blob:none"; };
  URL.revokeObjectURL = () => {};
  HTMLAnchorElement.prototype.click = function () { raw = [this.download, raw.size]; };
  document.querySelector("button[data-raw]").click();
  const cells = () => [...document.querySelectorAll("tbody")].map(body => body.rows[0].textContent).join();
  const before = cells();
  for (const head of document.querySelectorAll("th:last-child button")) { head.click(); head.click(); }
  const paper = () => getComputedStyle(document.body).backgroundColor;
  const first = paper();
  document.getElementById("look").click();
  parent.postMessage(JSON.stringify({
    width: innerWidth, scrolls: document.documentElement.scrollWidth > document.documentElement.clientWidth, drawn: drawn.length,
    marks: drawn.map(svg => svg.querySelectorAll("rect,path,circle").length).reduce((a, b) => Math.min(a, b), 999),
    outside: outside.map(e => e.tagName + "." + e.className), raw, sorted: before !== cells(),
    paper: [first, paper()],
  }), "*");
});
"#;

fn browser() -> Option<&'static str> {
    let is_there = |name: &&str| {
        Command::new(name)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok()
    };
    ["chromium", "google-chrome", "chromium-browser"]
        .into_iter()
        .find(is_there)
}

/// What the browser saw of a page in a window of this size, and what it complained of.
fn look(browser: &str, folder: &Path, page: &str, width: u32) -> (Value, String) {
    let probe = format!("<script>{PROBE}</script></body>");
    std::fs::write(folder.join("page.html"), page.replace("</body>", &probe)).unwrap();
    let around = format!(
        "<!doctype html><body><iframe src=page.html width={width} height=900 style='border:0'></iframe>\
         <script>addEventListener('message', told => {{ document.body.dataset.seen = told.data; }});</script>"
    );
    let path = folder.join("around.html");
    std::fs::write(&path, around).unwrap();
    let profile = TempDir::new().unwrap();
    let mut command = Command::new(browser);
    command
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            "--v=0",
            "--dump-dom",
            "--timeout=20000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--window-size=1400,1000")
        .arg(format!("file://{}", path.display()))
        .stdin(Stdio::null());
    let output = command.output().unwrap();
    let page = String::from_utf8(output.stdout).unwrap();
    let complaints: Vec<String> = String::from_utf8_lossy(&output.stderr)
        .lines()
        .filter(|line| line.contains("CONSOLE"))
        .map(ToOwned::to_owned)
        .collect();
    let seen = page
        .split_once("data-seen=\"")
        .and_then(|(_, rest)| rest.split_once('"'));
    let seen = seen
        .unwrap_or_else(|| {
            panic!(
                "the script did not run: {}",
                String::from_utf8_lossy(&output.stderr)
            )
        })
        .0;
    (
        serde_json::from_str(&seen.replace("&quot;", "\"")).unwrap(),
        complaints.join("\n"),
    )
}

#[test]
fn a_browser_shows_every_chart_and_complains_of_nothing() {
    let Some(browser) = browser() else {
        stook_testkit::skip!("there is no chromium");
        return;
    };
    let folder = TempDir::new().unwrap();
    let all = [
        fs(
            &["/scratch", "/nfs/home", ODD[0], ODD[1], ODD[2], "/tmp"],
            5,
            DAY,
            1,
        ),
        cache(5, true, DAY, 2),
        update(&["stook", "zstash", "tar"], 3, DAY, 3),
        fs(&["/scratch"], 1, DAY, 4),
        bare(Kind::Cache),
    ];
    let page = report::page(&all);
    for width in [1280, 390] {
        let (seen, complaints) = look(browser, folder.path(), &page, width);
        assert_eq!(complaints, "", "{width}");
        assert_eq!(seen["width"], width, "{seen}");
        assert_eq!(seen["scrolls"], false, "{seen}");
        assert_eq!(seen["outside"], serde_json::json!([]), "{seen}");
        assert_eq!(seen["drawn"], report::figures(&all).len(), "{seen}");
        assert!(seen["marks"].as_u64().unwrap() >= 4, "{seen}");
        assert_eq!(seen["sorted"], true);
        assert_ne!(seen["paper"][0], seen["paper"][1]);
        assert_eq!(
            seen["raw"],
            serde_json::json!([
                "stook-1-2026-11-21.jsonl",
                lines(&all[0]).replace('<', "\\u003c").len()
            ])
        );
    }
}
