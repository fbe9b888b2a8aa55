//! Specs as TOML files. What a file leaves out is as in `arc`; `docs/bench/fileset.toml` shows all of it.

use std::ffi::OsStr;
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use serde::Deserialize;
use stook_sys::display_path;
use toml::Spanned;
use toml::value::{Date, Datetime};

use crate::error::BenchError;
use crate::fileset::distribution::{Distribution, Sizes};
use crate::fileset::spec::{Levels, Shape, Spec, Times};

/// The sizes that files may have: to 1 TiB.
const SIZES: RangeInclusive<u64> = 0..=1 << 40;

/// Levels of directories: paths with more are too long for most programs.
const LEVELS: RangeInclusive<u64> = 0..=1000;

/// Directories or files in a directory.
const WIDTHS: RangeInclusive<u64> = 1..=1_000_000_000;

/// The spread of logarithms of sizes; with 10, one file in six has more than 22,000 times the median.
const SIGMAS: RangeInclusive<f64> = 0.0..=10.0;

/// What every file system can keep as a time: 31 bits of seconds.
const YEARS: RangeInclusive<u16> = 1970..=2037;

const SECONDS_OF_A_DAY: i64 = 86_400;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpecFile {
    sizes: Option<SizesTable>,
    content: Option<ContentTable>,
    tree: Option<TreeTable>,
    times: Option<TimesTable>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum SizesTable {
    LogNormal {
        median: Option<Spanned<f64>>,
        mean: Option<Spanned<f64>>,
        sigma: Spanned<f64>,
        min: Option<Spanned<u64>>,
        max: Option<Spanned<u64>>,
    },
    Uniform {
        min: Spanned<u64>,
        max: Spanned<u64>,
    },
    Fixed {
        bytes: Spanned<u64>,
    },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentTable {
    text: Spanned<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TreeTable {
    depth: Option<Spanned<u64>>,
    fan_out: Option<Spanned<u64>>,
    files_per_directory: Option<Spanned<[u64; 2]>>,
    files_at: Option<FilesAt>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FilesAt {
    Deepest,
    Every,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TimesTable {
    from: Spanned<Datetime>,
    to: Spanned<Datetime>,
}

/// What is wrong, and at which bytes of the file.
struct Wrong {
    at: Range<usize>,
    why: String,
}

impl Wrong {
    fn new<T>(value: &Spanned<T>, why: impl Into<String>) -> Self {
        Self {
            at: value.span(),
            why: why.into(),
        }
    }
}

impl Spec {
    /// Returns the spec with this name, or the one that the file at this path describes.
    ///
    /// # Errors
    /// [`BenchError::Usage`] for what is neither, and with the line for a file that makes no sense; [`BenchError::Sys`]
    /// for one that cannot be read.
    pub fn find(name_or_path: &OsStr) -> Result<Self, BenchError> {
        if let Some(spec) = name_or_path.to_str().and_then(Self::named) {
            return Ok(spec);
        }
        let path = Path::new(name_or_path);
        let is_path = path.extension().is_some() || path.components().count() > 1;
        if !is_path && stook_sys::exists(path)?.is_none() {
            let names = Self::NAMES.map(|name| format!("`{name}`")).join(", ");
            let path = display_path(path);
            return Err(BenchError::Usage(format!(
                "there is no spec `{path}`: it is neither one of {names} nor a file"
            )));
        }
        Self::parse(&stook_sys::read_text(path)?, path)
    }

    /// Returns the spec that a text describes; `path` is the file that holds it, and gives the name.
    ///
    /// # Errors
    /// [`BenchError::Usage`] with the line, if the text makes no sense.
    pub fn parse(text: &str, path: &Path) -> Result<Self, BenchError> {
        let name = path.file_stem().unwrap_or(path.as_os_str());
        read(text, display_path(name)).map_err(|wrong| {
            let (line, key) = line_and_key(text, wrong.at.start);
            let key = key.map(|key| format!(", `{key}`")).unwrap_or_default();
            let (path, why) = (display_path(path), wrong.why);
            BenchError::Usage(format!("cannot use `{path}`, line {line}{key}: {why}"))
        })
    }
}

/// Returns the number of the line that holds a byte, and the key before it on that line, with the name of its table.
fn line_and_key(text: &str, at: usize) -> (usize, Option<String>) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count();
    let lines: Vec<&str> = text.lines().take(line + 1).map(str::trim).collect();
    let last = lines.last().copied().unwrap_or("");
    let header = lines.iter().rev().find(|line| line.starts_with('['));
    let table = header.and_then(|header| header.trim_start_matches('[').split(']').next());
    let key = last.split_once('=').map(|(key, _)| key.trim());
    let names = [table, key].into_iter().flatten();
    let named: Vec<&str> = names.filter(|name| !name.is_empty()).collect();
    let key = Some(named.join(".")).filter(|key| !key.is_empty());
    (line + 1, key)
}

fn read(text: &str, name: String) -> Result<Spec, Wrong> {
    let file: SpecFile = toml::from_str(text).map_err(|error| Wrong {
        at: error.span().unwrap_or(0..0),
        why: error.message().to_owned(),
    })?;
    let mut spec = Spec::arc();
    spec.name = name;
    if let Some(table) = &file.sizes {
        spec.sizes = sizes(table)?;
    }
    if let Some(table) = &file.content {
        spec.text = within(&table.text, &(0.0..=1.0))?;
    }
    if let Some(table) = &file.tree {
        change_shape(&mut spec.tree, table)?;
    }
    if let Some(table) = &file.times {
        spec.times = times(table)?;
    }
    Ok(spec)
}

fn sizes(table: &SizesTable) -> Result<Sizes, Wrong> {
    match table {
        SizesTable::LogNormal {
            median,
            mean,
            sigma,
            min,
            max,
        } => {
            let distribution = log_normal(median.as_ref(), mean.as_ref(), sigma)?;
            let min = min.as_ref().map(|min| within(min, &SIZES)).transpose()?;
            let least = min.unwrap_or(*SIZES.start());
            let most = max.as_ref().map(|max| within(max, &(least..=*SIZES.end())));
            Ok(Sizes {
                distribution,
                min: least,
                max: most.transpose()?.unwrap_or(*SIZES.end()),
            })
        }
        SizesTable::Uniform { min, max } => {
            let min = within(min, &SIZES)?;
            Ok(Sizes {
                distribution: Distribution::Uniform,
                min,
                max: within(max, &(min..=*SIZES.end()))?,
            })
        }
        SizesTable::Fixed { bytes } => {
            let bytes = within(bytes, &SIZES)?;
            Ok(Sizes {
                distribution: Distribution::Fixed { bytes },
                min: bytes,
                max: bytes,
            })
        }
    }
}

fn log_normal(
    median: Option<&Spanned<f64>>,
    mean: Option<&Spanned<f64>>,
    sigma: &Spanned<f64>,
) -> Result<Distribution, Wrong> {
    // A float as wide as the sizes.
    let sizes = 1.0..=1e12;
    let spread = within(sigma, &SIGMAS)?;
    match (median, mean) {
        (Some(median), None) => Ok(Distribution::LogNormal {
            median: within(median, &sizes)?,
            sigma: spread,
        }),
        (None, Some(mean)) => Ok(Distribution::with_mean(within(mean, &sizes)?, spread)),
        (Some(_), Some(mean)) => Err(Wrong::new(
            mean,
            "`median` is there already, and says it all",
        )),
        (None, None) => Err(Wrong::new(sigma, "`median` or `mean` must be there, too")),
    }
}

fn change_shape(shape: &mut Shape, table: &TreeTable) -> Result<(), Wrong> {
    if let Some(depth) = &table.depth {
        shape.depth = usize::try_from(within(depth, &LEVELS)?).unwrap_or(0);
    }
    if let Some(fan_out) = &table.fan_out {
        shape.fan_out = within(fan_out, &WIDTHS)?;
    }
    if let Some(files) = &table.files_per_directory {
        let [least, most] = *files.get_ref();
        if least > most || !WIDTHS.contains(&most) {
            let why = "it must be the least and the most files, such as [1, 99]";
            return Err(Wrong::new(files, why));
        }
        shape.files_per_directory = (least, most);
    }
    if let Some(files_at) = table.files_at {
        shape.files_at = match files_at {
            FilesAt::Deepest => Levels::Deepest,
            FilesAt::Every => Levels::Every,
        };
    }
    Ok(())
}

fn times(table: &TimesTable) -> Result<Times, Wrong> {
    let (from, to) = (midnight(&table.from)?, midnight(&table.to)?);
    if from >= to {
        return Err(Wrong::new(&table.to, "it must be later than `from`"));
    }
    Ok(Times { from, to })
}

/// Returns the second at which a day begins, in UTC.
fn midnight(value: &Spanned<Datetime>) -> Result<i64, Wrong> {
    match value.get_ref() {
        Datetime {
            date: Some(date),
            time: None,
            ..
        } if YEARS.contains(&date.year) => Ok(days_since_1970(*date) * SECONDS_OF_A_DAY),
        _ => {
            let (first, last) = (YEARS.start(), YEARS.end());
            let why =
                format!("it must be a day from {first}-01-01 to {last}-12-31, without a time");
            Err(Wrong::new(value, why))
        }
    }
}

/// Returns the days from 1970-01-01 to a later day: of whole years, of whole months, of the month.
fn days_since_1970(date: Date) -> i64 {
    const BEFORE_MONTH: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let year = i64::from(date.year);
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let leaps = |year: i64| year / 4 - year / 100 + year / 400;
    let month = usize::from(date.month);
    let leap_day = i64::from(is_leap && month > 2);
    let of_years = (year - 1970) * 365 + leaps(year - 1) - leaps(1969);
    of_years + BEFORE_MONTH[(month + 11) % 12] + leap_day + i64::from(date.day) - 1
}

fn within<T: PartialOrd + Display + Copy>(
    value: &Spanned<T>,
    range: &RangeInclusive<T>,
) -> Result<T, Wrong> {
    if range.contains(value.get_ref()) {
        return Ok(*value.get_ref());
    }
    let (least, most) = (range.start(), range.end());
    Err(Wrong::new(
        value,
        format!("it must be from {least} to {most}"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Spec {
        Spec::parse(text, Path::new("folder/some.toml")).unwrap()
    }

    fn why(text: &str) -> String {
        let error = Spec::parse(text, Path::new("some.toml")).unwrap_err();
        assert!(matches!(error, BenchError::Usage(_)));
        let text = error.to_string();
        text.strip_prefix("cannot use `some.toml`, ")
            .unwrap()
            .to_owned()
    }

    #[test]
    fn what_is_left_out_is_as_in_arc() {
        let arc = Spec {
            name: "some".to_owned(),
            ..Spec::arc()
        };
        assert_eq!(parsed(""), arc);
        let tree = Shape {
            depth: 3,
            ..arc.tree
        };
        assert_eq!(parsed("[tree]\ndepth = 3\n"), Spec { tree, ..arc });
    }

    #[test]
    fn the_example_in_the_documentation_is_arc() {
        let text = include_str!("../../../../docs/bench/fileset.toml");
        assert_eq!(
            Spec::parse(text, Path::new("arc.toml")).unwrap(),
            Spec::arc()
        );
    }

    #[test]
    fn distributions_are_read() {
        let of = |text: &str| parsed(text).sizes;
        let fixed = of("sizes.fixed.bytes = 4096");
        assert_eq!(
            (fixed.distribution, fixed.quantile(0.9)),
            (Distribution::Fixed { bytes: 4096 }, 4096)
        );
        let uniform = of("[sizes.uniform]\nmin = 10\nmax = 20");
        assert_eq!((uniform.min, uniform.max), (10, 20));
        let by_mean = of("[sizes.lognormal]\nmean = 1000\nsigma = 2");
        assert_eq!(by_mean.distribution, Distribution::with_mean(1000.0, 2.0));
        assert_eq!((by_mean.min, by_mean.max), (0, 1 << 40));
    }

    #[test]
    fn days_are_counted_over_leap_years() {
        for (day, seconds) in [
            ("1970-01-01", 0),
            ("1972-02-29", 68_169_600),
            ("2000-03-01", 951_868_800),
            ("2024-12-31", 1_735_603_200),
            ("2037-12-30", 2_145_744_000),
        ] {
            let times = format!("times = {{ from = {day}, to = 2037-12-31 }}");
            assert_eq!(parsed(&times).times.from, seconds, "{day}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_told_with_line_and_key() {
        for (text, expected) in [
            ("[sizes.fixed]\nbytes = -1", "line 2, `sizes.fixed.bytes`: "),
            (
                "\n[tree]\ndepht = 2",
                "line 3, `tree.depht`: unknown field `depht`, expected one of ",
            ),
            (
                "text = 0.5",
                "line 1, `text`: unknown field `text`, expected one of ",
            ),
            (
                "[content]\ntext = 1.5",
                "line 2, `content.text`: it must be from 0 to 1",
            ),
            (
                "[content]\ntext = nan",
                "line 2, `content.text`: it must be from 0 to 1",
            ),
            (
                "[content]\ntext = \"much\"",
                "line 2, `content.text`: invalid type: string \"much\"",
            ),
            (
                "[sizes.lognormal]\nmedian = 5",
                "line 1, `sizes.lognormal`: missing field `sigma`",
            ),
            (
                "[sizes.lognormal]\nsigma = 1",
                "line 2, `sizes.lognormal.sigma`: `median` or `mean` must be there, too",
            ),
            (
                "[sizes.lognormal]\nsigma = 1\nmean = 5\nmedian = 5",
                "line 3, `sizes.lognormal.mean`: `median` is there already, and says it all",
            ),
            (
                "[sizes.uniform]\nmin = 7\nmax = 5",
                "line 3, `sizes.uniform.max`: it must be from 7 to 1099511627776",
            ),
            (
                "[sizes.normal]\nmean = 7",
                "line 1, `sizes.normal`: unknown variant `normal`, expected",
            ),
            (
                "[tree]\nfiles_per_directory = [9, 3]",
                "line 2, `tree.files_per_directory`: it must be the least and the most files",
            ),
            (
                "[tree]\nfan_out = 0",
                "line 2, `tree.fan_out`: it must be from 1 to 1000000000",
            ),
            (
                "[times]\nfrom = 2023-01-01\nto = 2023-01-01",
                "line 3, `times.to`: it must be later than `from`",
            ),
            (
                "[times]\nfrom = 1969-12-31\nto = 2023-01-01",
                "line 2, `times.from`: it must be a day from 1970-01-01 to 2037-12-31",
            ),
            (
                "[times]\nfrom = 2023-01-01T00:00:00Z\nto = 2024-01-01",
                "line 2, `times.from`: it must be",
            ),
            ("[tree\n", "line 1"),
        ] {
            let found = why(text);
            assert!(found.starts_with(expected), "{text:?}: {found}");
        }
    }

    #[test]
    fn a_spec_is_a_name_or_a_file() {
        let find = |text: &str| Spec::find(OsStr::new(text));
        assert_eq!(find("flat").unwrap().name, "flat");
        let error = find("ark").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no spec `ark`: it is neither one of `arc`, `flat`, `deep` nor a file"
        );
        assert!(matches!(find("no/such.toml"), Err(BenchError::Sys(_))));
    }
}
