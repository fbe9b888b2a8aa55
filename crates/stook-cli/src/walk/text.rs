//! A summary as text: the figures one below the other, then tables.

use stook_archive::DEFAULT_VOLUME_BYTES;
use stook_sys::display_bytes;
use stook_tree::{Group, Ranking, SizeClass, SizeFigures, Summary};

use super::Walker;
use super::table::Table;
use crate::number::{decimal, grouped, mean_size, size, whole_percent};

/// Subtrees that are shown; of the others there is only the sum.
const MOST_ADVISED: usize = 10;

/// Figures are at least so wide: below a petabyte all summaries are alike.
const FIGURE_WIDTH: usize = 20;

/// Returns the whole report.
pub(super) fn text(summary: &Summary, walker: &Walker<'_>) -> String {
    let mut text = String::new();
    push_figures(&mut text, summary, walker.failed());
    push_classes(&mut text, summary);
    let extension = |group: &Group| match group.name.as_slice() {
        b"" => "(none)".to_owned(),
        name => display_bytes(name),
    };
    push_ranking(
        &mut text,
        summary,
        &summary.extensions,
        "extension",
        extension,
    );
    if summary.has_more_extensions {
        text.push_str("(of very many extensions, those met late count as none)\n");
    }
    let path = |group: &Group| display_bytes(&walker.full_path(&group.name));
    let directories = &summary.largest_directories;
    push_ranking(&mut text, summary, directories, "directly in", path);
    push_advice(&mut text, summary, path);
    text
}

fn push_figures(text: &mut String, summary: &Summary, failed: u64) {
    let Summary { counts, sizes, .. } = summary;
    let figure_of = |figure: fn(&SizeFigures) -> String| {
        let figure = sizes.as_ref().map_or_else(|| "-".to_owned(), figure);
        (figure, String::new())
    };
    let number = |number: u64| (grouped(number), String::new());
    let bytes = |bytes: u128| (grouped(bytes), size(bytes));
    let mut lines = vec![
        ("files", number(counts.files)),
        ("directories", number(summary.directories)),
        ("links", number(summary.links)),
        ("others", number(summary.others)),
        ("bytes", bytes(counts.bytes)),
        ("on disk", bytes(counts.on_disk)),
        ("mean", figure_of(|sizes| decimal(sizes.mean))),
        ("stdev", figure_of(|sizes| decimal(sizes.deviation))),
        ("min", figure_of(|sizes| grouped(sizes.smallest))),
        ("median", figure_of(|sizes| grouped(sizes.median))),
        ("max", figure_of(|sizes| grouped(sizes.largest))),
    ];
    if failed > 0 {
        let remark = "could not be looked at".to_owned();
        lines.push(("failed", (grouped(failed), remark)));
    }
    let widths = lines.iter().map(|(_, (figure, _))| figure.len());
    let width = widths.fold(FIGURE_WIDTH, usize::max);
    for (name, (figure, remark)) in lines {
        let line = format!("{name:<11} {figure:>width$}  {remark}");
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

fn push_classes(text: &mut String, summary: &Summary) {
    if summary.classes.is_empty() {
        return;
    }
    let mut table = Table::new(&["files", "share", "bytes", "share", "size"]);
    for class in &summary.classes {
        table.push(vec![
            grouped(class.files),
            whole_percent(class.files.into(), summary.counts.files.into()),
            size(class.bytes),
            whole_percent(class.bytes, summary.counts.bytes),
            range(class),
        ]);
    }
    text.push('\n');
    table.push_to(text);
}

fn range(class: &SizeClass) -> String {
    match class.to.checked_add(1) {
        Some(1) => "empty".to_owned(),
        Some(end) => format!("below {}", size(end).replace(".0", "")),
        None => format!("{} and more", size(class.from).replace(".0", "")),
    }
}

/// Both orders; only one if it has all there are.
fn push_ranking(
    text: &mut String,
    summary: &Summary,
    ranking: &Ranking,
    what: &str,
    name: impl Fn(&Group) -> String,
) {
    let Ranking { by_files, by_bytes } = ranking;
    push_groups(
        text,
        summary,
        by_files,
        &format!("{what}, most files"),
        &name,
    );
    let is_listed = |group: &Group| by_files.contains(group);
    if !by_bytes.iter().all(is_listed) {
        push_groups(
            text,
            summary,
            by_bytes,
            &format!("{what}, most bytes"),
            &name,
        );
    }
}

fn push_groups(
    text: &mut String,
    summary: &Summary,
    groups: &[Group],
    head: &str,
    name: impl Fn(&Group) -> String,
) {
    if groups.is_empty() {
        return;
    }
    let mut table = Table::new(&["files", "share", "bytes", "share", "on disk", "mean", head]);
    for group in groups {
        let counts = &group.counts;
        table.push(vec![
            grouped(counts.files),
            whole_percent(counts.files.into(), summary.counts.files.into()),
            size(counts.bytes),
            whole_percent(counts.bytes, summary.counts.bytes),
            size(counts.on_disk),
            counts.mean().map_or_else(|| "-".to_owned(), mean_size),
            name(group),
        ]);
    }
    text.push('\n');
    table.push_to(text);
}

fn push_advice(text: &mut String, summary: &Summary, path: impl Fn(&Group) -> String) {
    let advice = &summary.advice;
    if advice.is_empty() {
        text.push_str("\nno directory would gain from being archived\n");
        return;
    }
    let shown = &advice[..advice.len().min(MOST_ADVISED)];
    push_groups(text, summary, shown, "would gain from being archived", path);
    let hidden = advice.len() - shown.len();
    if hidden > 0 {
        text.push_str(&format!("and {} more\n", grouped(hidden as u64)));
    }
    let entries: u64 = advice.iter().map(|group| group.counts.entries).sum();
    text.push_str(&format!(
        "archived, {} inodes would be {}: `stook create`, then `stook remove --archived-in`\n",
        grouped(entries),
        grouped(advice.iter().map(archived_inodes).sum::<u128>()),
    ));
}

/// Returns how many inodes an archive of a subtree has: a folder, the index and the volumes.
fn archived_inodes(subtree: &Group) -> u128 {
    let volumes = subtree.counts.bytes.div_ceil(DEFAULT_VOLUME_BYTES.into());
    2 + volumes.max(1)
}

#[cfg(test)]
mod tests {
    use stook_tree::Counts;

    use super::*;

    #[test]
    fn an_archive_has_a_folder_an_index_and_volumes() {
        let volume = u128::from(DEFAULT_VOLUME_BYTES);
        let inodes = |bytes| {
            archived_inodes(&Group {
                name: Vec::new(),
                counts: Counts {
                    bytes,
                    ..Counts::default()
                },
            })
        };
        assert_eq!(
            [0, volume, volume + 1, 9 * volume].map(inodes),
            [3, 3, 4, 11]
        );
    }

    #[test]
    fn classes_are_named_by_their_end() {
        let class = |from, to| {
            range(&SizeClass {
                from,
                to,
                files: 0,
                bytes: 0,
            })
        };
        assert_eq!(class(0, 0), "empty");
        assert_eq!(class(1, 9), "below 10 B");
        assert_eq!(class(10_000, 99_999), "below 100 kB");
        assert_eq!(class(100_000, 999_999), "below 1 MB");
        let largest = 10_000_000_000_000_000_000;
        assert_eq!(class(largest, u64::MAX), "10 EB and more");
    }
}
