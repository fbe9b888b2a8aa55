//! The page itself: parts in, HTML out. maud escapes all texts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::figure::{clean, page_style};
use crate::record::{Kind, Results};

use super::part::{Exhibit, Part};
use super::{compare, facts, warnings};

/// Stands near the beginning of every page, so that a page can be told from other files.
pub const MARK: &str = "<meta name=\"generator\" content=\"stook bench report\">";

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// Returns the page.
pub(super) fn page(all: &[Results], parts: &[Part]) -> String {
    let title = match parts {
        [only] => only.title.clone(),
        _ => "Measurements by stook".to_owned(),
    };
    let compared = compare::compare(all);
    let html = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                (PreEscaped(MARK))
                meta name="viewport" content="width=device-width, initial-scale=1";
                // Whatever stands in results: nothing is fetched.
                meta http-equiv="Content-Security-Policy"
                    content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";
                // Without it a browser would ask the server for an icon.
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(page_style())) (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (head(&title, all))
                    @if parts.len() > 1 { (contents(all, parts, !compared.is_empty())) }
                    @if !compared.is_empty() {
                        section #side-by-side {
                            h2 { "Side by side" }
                            @for compared in &compared {
                                (exhibit(&Exhibit {
                                    title: compared.title.to_owned(),
                                    caption: "What was measured in both runs under the same names. Below the dashed line the later of the two in the list is faster.".to_owned(),
                                    figures: compared.figures.clone(),
                                }))
                                (compared.sheet.html())
                            }
                        }
                    }
                    @for (number, (results, part)) in all.iter().zip(parts).enumerate() {
                        (run(number, results, part, all.len()))
                    }
                    (foot())
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    html.into_string()
}

fn head(title: &str, all: &[Results]) -> Markup {
    let mut dates: Vec<&str> = all.iter().map(|run| day(&run.header.started)).collect();
    dates.sort_unstable();
    dates.dedup();
    html! {
        header {
            p.kicker { "stook bench · " (clean(&dates.join(", "))) }
            h1 { (title) }
            // Shown by the script: without it, the system's choice holds.
            button #look type="button" hidden { "Dark" }
        }
    }
}

/// The day of a time such as `2026-11-21T10:00:00Z`.
fn day(time: &str) -> &str {
    time.split('T').next().unwrap_or(time)
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Fs => "stook bench fs",
        Kind::Cache => "stook bench cache",
        Kind::Update => "stook bench update",
    }
}

fn contents(all: &[Results], parts: &[Part], is_compared: bool) -> Markup {
    html! {
        nav {
            ol {
                @for (number, (results, part)) in all.iter().zip(parts).enumerate() {
                    li {
                        a href={ "#run-" (number + 1) } { (part.title) }
                        " " span.faint { (clean(day(&results.header.started))) ", " (clean(&results.header.machine.processor)) }
                    }
                }
            }
            @if is_compared { p { a href="#side-by-side" { "Runs side by side" } } }
        }
    }
}

fn run(number: usize, results: &Results, part: &Part, runs: usize) -> Markup {
    let warnings = warnings::of(results);
    html! {
        section id={ "run-" (number + 1) } {
            @if runs > 1 { h2 { span.number { (number + 1) } (part.title) } }
            p.measured { (backticks(&part.measured)) }
            @if !part.findings.is_empty() {
                ul.findings { @for finding in &part.findings { li { (backticks(finding)) } } }
            }
            @if !warnings.is_empty() {
                div.warnings { h3 { "Read with care" } ul { @for warning in &warnings { li { (backticks(warning)) } } } }
            }
            @if !part.exhibits.is_empty() {
                h3 { "Figures" }
                @for exhibit in &part.exhibits { (self::exhibit(exhibit)) }
            }
            @if !part.sheets.is_empty() {
                h3 { "Tables" }
                @for sheet in &part.sheets { (sheet.html()) }
            }
            (conditions(results))
            (raw(number, results))
        }
    }
}

/// One figure stands beside its caption; several stand beside each other, below it.
fn exhibit(exhibit: &Exhibit) -> Markup {
    let count = exhibit.figures.len();
    let class = if count > 1 {
        "exhibit many"
    } else {
        "exhibit one"
    };
    html! {
        figure class=(class) {
            figcaption { h4 { (clean(&exhibit.title)) } p { (clean(&exhibit.caption)) } }
            div.drawings.two[count == 2] {
                @for figure in &exhibit.figures {
                    div.drawing {
                        @if count > 1 { h5 { (clean(&figure.title)) } }
                        (figure.for_page(count))
                    }
                }
            }
        }
    }
}

fn conditions(results: &Results) -> Markup {
    let header = &results.header;
    html! {
        h3 { "Conditions" }
        div.conditions {
            div { h4 { "Run" } dl {
                dt { "bench" } dd { (kind_name(header.kind)) }
                dt { "stook" } dd { (clean(&header.stook)) }
                dt { "started" } dd { (clean(&header.started)) }
                dt { "samples" } dd { (results.samples.len()) }
            } }
            @for (title, facts) in facts::groups(header) {
                div { h4 { (title) } dl { @for (name, value) in &facts { dt { (name) } dd { (value) } } } }
            }
        }
        @for sheet in [facts::file_sets(header), facts::named(header)] {
            @if !sheet.is_empty() { (sheet.html()) }
        }
    }
}

/// The samples themselves, as the bench wrote them.
fn raw(number: usize, results: &Results) -> Markup {
    let lines = std::iter::once(results.header.line())
        .chain(results.samples.iter().map(crate::record::Sample::line));
    // Within JSON `<` stands in texts only, and so can be spelled otherwise: no `</script>` ends the data.
    let data: String = lines
        .map(|line| line.replace('<', "\\u003c") + "\n")
        .collect();
    let name = format!(
        "stook-{}-{}.jsonl",
        number + 1,
        day(&results.header.started)
    );
    html! {
        h3 { "Raw samples" }
        p.raw {
            button type="button" hidden data-raw={ "raw-" (number + 1) } data-name=(clean(&name)) { "Save as JSON lines" }
            " " span.faint { "They are in this page, in the element " code { "raw-" (number + 1) } ": one JSON object a line." }
        }
        script id={ "raw-" (number + 1) } type="application/x-ndjson" { (PreEscaped("\n")) (PreEscaped(data)) }
    }
}

fn foot() -> Markup {
    html! {
        footer { p { "Medians of wall time. BLOCKED is the share of wall time in which neither the command nor what serves it was on a processor or waited for one. "
            "Intervals of 95 % are made by resampling; with few rounds they are rough." } }
    }
}

/// Puts what stands between backticks into code.
fn backticks(text: &str) -> Markup {
    html! {
        @for (place, piece) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (piece) } } @else { (piece) }
        }
    }
}
