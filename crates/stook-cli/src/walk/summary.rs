//! Figures about the entries instead of the entries.
//!
//! A worker counts a directory in one of a few counters, which are added up at the end.

use serde::Serialize;
use stook_sys::FileKind;
use stook_tree::{Detail, Group, Listing, Ranking, Summary, SummaryBuilder};

use super::{InTurns, Sink, Walker, text};
use crate::args::WalkArgs;
use crate::exit::{CliError, Ending};
use crate::output::Data;
use crate::report::{self, JsonPath, Line, text_and_hex};

#[derive(Default)]
struct Counter {
    counters: InTurns<SummaryBuilder>,
}

/// Walks the tree and prints its summary; nothing of one that was interrupted.
pub(super) fn run(walker: &Walker<'_>, args: &WalkArgs, is_json: bool) -> Result<Ending, CliError> {
    let counter = Counter::default();
    let needs_facts =
        walker.selection.needs_facts() || walker.selection.admits_kind(FileKind::File);
    let detail = if needs_facts {
        Detail::Facts
    } else {
        Detail::Kinds
    };
    walker.walk(args, detail, &counter)?;
    let ending = walker.ending();
    if ending == Ending::Interrupted {
        return Ok(ending);
    }
    let summary = counter.summary();
    walker.reporter.finish();
    let mut data = Data::new();
    if is_json {
        let figures = Box::new(Figures::new(&summary, walker));
        data.json(&Line::Summary(report::Summary::Figures(figures)))?;
    } else {
        data.text(&text::text(&summary, walker))?;
    }
    data.flush()?;
    Ok(ending)
}

impl Sink for Counter {
    fn take(&self, listing: &Listing, walker: &Walker<'_>) {
        self.counters
            .with(|counter| counter.add(listing, &walker.selection));
    }

    fn longest_path(&self) -> usize {
        SummaryBuilder::LONGEST_PATH
    }
}

impl Counter {
    fn summary(self) -> Summary {
        let counters = self.counters.into_all().into_iter();
        let all = counters.reduce(|mut all, counter| {
            all.merge(counter);
            all
        });
        all.unwrap_or_default().summary()
    }
}

/// The figures of a tree, as JSON.
#[derive(Serialize)]
pub(crate) struct Figures {
    files: u64,
    directories: u64,
    links: u64,
    others: u64,
    bytes: u128,
    on_disk: u128,
    mean: Option<f64>,
    stdev: Option<f64>,
    min: Option<u64>,
    median: Option<u64>,
    max: Option<u64>,
    failed: u64,
    sizes: Vec<JsonClass>,
    extensions: JsonRanking<JsonExtension>,
    /// False if there were too many to tell all of them apart.
    all_extensions: bool,
    largest_directories: JsonRanking<JsonPath>,
    advice: Vec<JsonGroup<JsonPath>>,
}

#[derive(Serialize)]
struct JsonClass {
    from: u64,
    to: u64,
    files: u64,
    bytes: u128,
}

#[derive(Serialize)]
struct JsonRanking<T> {
    by_files: Vec<JsonGroup<T>>,
    by_bytes: Vec<JsonGroup<T>>,
}

#[derive(Serialize)]
struct JsonGroup<T> {
    #[serde(flatten)]
    name: T,
    entries: u64,
    files: u64,
    bytes: u128,
    on_disk: u128,
    mean: Option<f64>,
}

/// An extension with its dot; empty if there is none.
#[derive(Serialize)]
struct JsonExtension {
    extension: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    extension_hex: Option<String>,
}

impl Figures {
    fn new(summary: &Summary, walker: &Walker<'_>) -> Self {
        let counts = &summary.counts;
        let sizes = summary.sizes.as_ref();
        let path = |name: &[u8]| JsonPath::new(&walker.full_path(name));
        let classes = summary.classes.iter().map(|class| JsonClass {
            from: class.from,
            to: class.to,
            files: class.files,
            bytes: class.bytes,
        });
        Self {
            files: counts.files,
            directories: summary.directories,
            links: summary.links,
            others: summary.others,
            bytes: counts.bytes,
            on_disk: counts.on_disk,
            mean: sizes.map(|sizes| sizes.mean),
            stdev: sizes.map(|sizes| sizes.deviation),
            min: sizes.map(|sizes| sizes.smallest),
            median: sizes.map(|sizes| sizes.median),
            max: sizes.map(|sizes| sizes.largest),
            failed: walker.failed(),
            sizes: classes.collect(),
            extensions: JsonRanking::new(&summary.extensions, JsonExtension::new),
            all_extensions: !summary.has_more_extensions,
            largest_directories: JsonRanking::new(&summary.largest_directories, path),
            advice: JsonGroup::all(&summary.advice, path),
        }
    }
}

impl<T> JsonRanking<T> {
    fn new(ranking: &Ranking, name: impl Fn(&[u8]) -> T) -> Self {
        Self {
            by_files: JsonGroup::all(&ranking.by_files, &name),
            by_bytes: JsonGroup::all(&ranking.by_bytes, &name),
        }
    }
}

impl<T> JsonGroup<T> {
    fn all(groups: &[Group], name: impl Fn(&[u8]) -> T) -> Vec<Self> {
        let group = |Group {
                         name: bytes,
                         counts,
                     }: &Group| Self {
            name: name(bytes),
            entries: counts.entries,
            files: counts.files,
            bytes: counts.bytes,
            on_disk: counts.on_disk,
            mean: counts.mean(),
        };
        groups.iter().map(group).collect()
    }
}

impl JsonExtension {
    fn new(extension: &[u8]) -> Self {
        let (extension, extension_hex) = text_and_hex(extension);
        Self {
            extension,
            extension_hex,
        }
    }
}
