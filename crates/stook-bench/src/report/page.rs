//! The page itself: parts in, HTML out. maud escapes all texts.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::section::{Exhibit, Section};
use super::{compare, conditions, warnings};
use crate::figure::{clean, page_style};
use crate::record::{Kind, Results, Sample};
use crate::table::Table;

/// Stands near the beginning of every page, so that a page can be told from other files.
pub const MARK: &str = "<meta name=\"generator\" content=\"stook bench report\">";

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
/// Longer tables are folded.
const LONG: usize = 24;

/// Returns the page.
pub(super) fn page(all: &[Results], sections: &[Section]) -> String {
    let title = match sections {
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
                    @if all.len() > 1 { (contents(all, sections, !compared.is_empty())) }
                    @if !compared.is_empty() { (side_by_side(&compared)) }
                    @for (number, (results, section)) in all.iter().zip(sections).enumerate() {
                        (run(number, results, section, all.len()))
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

fn contents(all: &[Results], sections: &[Section], is_compared: bool) -> Markup {
    html! {
        nav {
            ol {
                @for (number, (results, section)) in all.iter().zip(sections).enumerate() {
                    li {
                        a href={ "#run-" (number + 1) } { (section.title) }
                        " " span.faint { (clean(day(&results.header.started))) ", " (clean(&results.header.machine.processor)) }
                    }
                }
            }
            @if is_compared { p { a href="#side-by-side" { "Runs side by side" } } }
        }
    }
}

/// Runs of the same kind, of two machines or two days.
fn side_by_side(compared: &[compare::Compared]) -> Markup {
    let note = "Median seconds of each run, and its ratio to the first with the 95 % interval. Only what was measured in several runs under the same names.";
    html! {
        section #side-by-side {
            h2 { "Side by side" }
            @for compared in compared {
                (exhibit(&compared.exhibit))
                (titled(&compared.table.0, note, &self::table(&compared.table.0, &compared.table.1)))
            }
        }
    }
}

fn run(number: usize, results: &Results, section: &Section, runs: usize) -> Markup {
    let warnings = warnings::of(results);
    html! {
        section id={ "run-" (number + 1) } {
            @if runs > 1 { h2 { span.number { (number + 1) } (section.title) } }
            p.measured { (backticks(&section.measured)) }
            @if !section.findings.is_empty() {
                ul.findings { @for finding in &section.findings { li { (backticks(finding)) } } }
            }
            @if !warnings.is_empty() {
                div.warnings { h3 { "Read with care" } ul { @for warning in &warnings { li { (backticks(warning)) } } } }
            }
            @if !section.exhibits.is_empty() {
                h3 { "Figures" }
                @for exhibit in &section.exhibits { (self::exhibit(exhibit)) }
            }
            @if !section.tables.is_empty() {
                h3 { "Tables" }
                @for table in &section.tables { (titled(&table.title, &table.note, &folded(&table.title, &table.table))) }
            }
            (run_conditions(results))
            (raw(number, results))
        }
    }
}

fn titled(title: &str, note: &str, table: &Markup) -> Markup {
    html! {
        div.sheet {
            h4 { (title) }
            @if !note.is_empty() { p.note { (note) } }
            (table)
        }
    }
}

/// A table, below a line to click on if it is long.
fn folded(title: &str, table: &Table) -> Markup {
    html! {
        @if table.rows() > LONG {
            details { summary { "Show " (table.rows()) " rows" } (self::table(title, table)) }
        } @else {
            (self::table(title, table))
        }
    }
}

fn table(title: &str, table: &Table) -> Markup {
    let number = |is_figures: bool| is_figures.then_some("n");
    html! {
        div.scroll tabindex="0" role="region" aria-label=(title) {
            table {
                thead { tr { @for column in table.columns() {
                    th scope="col" class=[number(column.is_figures)] { (column.title) }
                } } }
                tbody { @for row in 0..table.rows() { tr { @for column in table.columns() {
                    @let value = column.cells[row].value.map(|value| format!("{value:.9}"));
                    td class=[number(column.is_figures)] data-value=[value] { (column.cells[row].text) }
                } } } }
            }
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

fn run_conditions(results: &Results) -> Markup {
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
            @for (title, facts) in conditions::groups(header) {
                div { h4 { (title) } dl { @for (name, value) in &facts { dt { (name) } dd { (value) } } } }
            }
        }
        @for (title, table) in [("Files", conditions::file_sets(header)), ("What the names stand for", conditions::named(header))] {
            @if !table.is_empty() { (titled(title, "", &folded(title, &table))) }
        }
    }
}

/// The samples themselves, as the bench wrote them.
fn raw(number: usize, results: &Results) -> Markup {
    let samples = results.samples.iter().map(Sample::line);
    let lines = std::iter::once(results.header.line()).chain(samples);
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
