//! What a file set is like: sizes, content, shape of the tree, times. Three specs have names, others are TOML files. What a
//! file leaves out is as in `arc`; `docs/bench/fileset.toml` shows all of it.

use std::ffi::OsStr;
use std::path::Path;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use stook_sys::display_path;

use crate::error::BenchError;
use crate::fileset::distribution::{Distribution, Sizes};

/// The greatest size of a file: 1 TiB.
const MOST_BYTES: u64 = 1 << 40;

const SECONDS_OF_A_DAY: i64 = 86_400;

/// What a file set is like.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Spec {
    /// The name under which its figures are shown.
    #[serde(skip)]
    pub name: String,
    /// How long files are.
    pub sizes: Sizes,
    /// What is in them.
    pub content: Content,
    /// How files lie in directories.
    pub tree: Shape,
    /// Seconds since 1970 between which files and directories were last modified.
    pub times: Times,
}

/// What is in files.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// The share of files that are text, from 0 to 1; the others cannot be compressed.
    #[serde(deserialize_with = "real::<_, 0, 1>")]
    pub text: f64,
}

/// The shape of a tree.
///
/// Directories are numbered from the first path to the last, and files fill them in that order. The root has as many
/// directories as it takes, each of the others as many as `fan_out` says, until there are no files left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shape {
    /// Directories on the way from the root to a file at the deepest level; 0: all files lie in the root. Paths with more
    /// than 1,000 are too long for most programs.
    #[serde(deserialize_with = "whole::<_, _, 0, 1000>")]
    pub depth: usize,
    /// Directories in a directory that is neither the root nor at the deepest level.
    #[serde(deserialize_with = "whole::<_, _, 1, 1_000_000_000>")]
    pub fan_out: u64,
    /// The least and the most files of a directory that holds any.
    #[serde(deserialize_with = "least_and_most")]
    pub files_per_directory: (u64, u64),
    /// Which directories hold files.
    pub files_at: Levels,
}

/// Levels of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Levels {
    /// The deepest one.
    Deepest,
    /// Every one below the root.
    Every,
}

/// A range of time, in seconds since 1970; its end is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Days")]
pub struct Times {
    /// Its first second.
    pub from: i64,
    /// The second after its last one.
    pub to: i64,
}

/// The sizes of the ARC scratch comparison: 1,290,284 files with mean 7,165 B, standard deviation 26,623, median 1,785.
///
/// No log-normal distribution between these limits has all three: with this sigma the median is exact, the mean 2.3 % above and
/// the deviation 2.6 % below.
const ARC_SIZES: Sizes = Sizes {
    distribution: Distribution::LogNormal {
        median: 1785.0,
        sigma: 1.684,
    },
    min: 21,
    max: 1_258_291,
};

const ARC_TREE: Shape = Shape {
    depth: 2,
    fan_out: 100,
    files_per_directory: (1, 99),
    files_at: Levels::Deepest,
};

impl Default for Shape {
    fn default() -> Self {
        ARC_TREE
    }
}

/// The years 2023 and 2024.
const ARC_TIMES: Times = Times {
    from: 1_672_531_200,
    to: 1_735_689_600,
};

/// As in `arc`.
impl Default for Spec {
    fn default() -> Self {
        Self {
            name: "arc".to_owned(),
            sizes: ARC_SIZES,
            content: Content { text: 0.5 },
            tree: ARC_TREE,
            times: ARC_TIMES,
        }
    }
}

impl Spec {
    /// The names that [`Spec::named`] knows.
    pub const NAMES: [&str; 3] = ["arc", "flat", "deep"];

    /// Returns the spec with this name: `arc`, as scratch of a cluster looks; `flat`, the same files in one directory;
    /// `deep`, the same files in chains of 50 directories.
    pub fn named(name: &str) -> Option<Self> {
        let tree = match name {
            "arc" => ARC_TREE,
            "flat" => Shape {
                depth: 0,
                fan_out: 1,
                files_per_directory: (1, 1),
                files_at: Levels::Deepest,
            },
            "deep" => Shape {
                depth: 50,
                fan_out: 1,
                files_per_directory: (1, 3),
                files_at: Levels::Every,
            },
            _ => return None,
        };
        Some(Self {
            name: name.to_owned(),
            tree,
            ..Self::default()
        })
    }

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
            return Err(BenchError::usage(format!(
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
        let spec: Self = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            let before = text.get(..at).unwrap_or(text).matches('\n').count();
            let line = text.lines().nth(before).unwrap_or_default().trim();
            let (path, number, why) = (display_path(path), before + 1, error.message());
            BenchError::usage(format!(
                "cannot use `{path}`, line {number}, `{line}`: {why}"
            ))
        })?;
        let name = display_path(path.file_stem().unwrap_or(path.as_os_str()));
        Ok(Self { name, ..spec })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum SizesTable {
    LogNormal {
        #[serde(default, deserialize_with = "size_like")]
        median: Option<f64>,
        #[serde(default, deserialize_with = "size_like")]
        mean: Option<f64>,
        /// With 10, one file in six has more than 22,000 times the median.
        #[serde(deserialize_with = "real::<_, 0, 10>")]
        sigma: f64,
        #[serde(default)]
        min: u64,
        #[serde(default = "most_bytes")]
        max: u64,
    },
    Uniform {
        min: u64,
        max: u64,
    },
    Fixed {
        bytes: u64,
    },
}

impl TryFrom<SizesTable> for Sizes {
    type Error = String;

    fn try_from(table: SizesTable) -> Result<Self, String> {
        let (distribution, min, max) = match table {
            SizesTable::LogNormal {
                median,
                mean,
                sigma,
                min,
                max,
            } => match (median, mean) {
                (Some(median), None) => (Distribution::LogNormal { median, sigma }, min, max),
                (None, Some(mean)) => (Distribution::with_mean(mean, sigma), min, max),
                _ => return Err("either `median` or `mean` must be there".to_owned()),
            },
            SizesTable::Uniform { min, max } => (Distribution::Uniform, min, max),
            SizesTable::Fixed { bytes } => (Distribution::Fixed { bytes }, bytes, bytes),
        };
        if min > max || max > MOST_BYTES {
            return Err(format!(
                "sizes must be from 0 to {MOST_BYTES}, the least one first"
            ));
        }
        Ok(Self {
            distribution,
            min,
            max,
        })
    }
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = SizesTable::deserialize(deserializer)?;
        table.try_into().map_err(D::Error::custom)
    }
}

fn most_bytes() -> u64 {
    MOST_BYTES
}

/// Two days, at whose beginning in UTC times begin and end.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Days {
    #[serde(deserialize_with = "midnight")]
    from: i64,
    #[serde(deserialize_with = "midnight")]
    to: i64,
}

impl TryFrom<Days> for Times {
    type Error = &'static str;

    fn try_from(Days { from, to }: Days) -> Result<Self, &'static str> {
        if from < to {
            return Ok(Self { from, to });
        }
        Err("`to` must be later than `from`")
    }
}

/// Only days that every file system can keep as a time: 31 bits of seconds.
fn midnight<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    let written = toml::value::Datetime::deserialize(deserializer)?;
    let day = written
        .date
        .filter(|day| written.time.is_none() && (1970..=2037).contains(&day.year));
    let why = "it must be a day from 1970-01-01 to 2037-12-31, without a time";
    let day = day.ok_or_else(|| D::Error::custom(why))?;
    Ok(days_since_1970(day) * SECONDS_OF_A_DAY)
}

/// Years begin in March here, so that the leap day is the last one of its year.
fn days_since_1970(day: toml::value::Date) -> i64 {
    let (year, month) = (i64::from(day.year), i64::from(day.month));
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_years = year * 365 + year / 4 - year / 100 + year / 400;
    let of_months = (153 * month + 2) / 5;
    of_years + of_months + i64::from(day.day) - 1 - 719_468
}

fn least_and_most<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(u64, u64), D::Error> {
    let [least, most] = <[u64; 2]>::deserialize(deserializer)?;
    if least > most || !(1..=1_000_000_000).contains(&most) {
        let why = "it must be the least and the most files, such as [1, 99]";
        return Err(D::Error::custom(why));
    }
    Ok((least, most))
}

fn whole<'de, D: Deserializer<'de>, T: TryFrom<u64>, const LEAST: u64, const MOST: u64>(
    deserializer: D,
) -> Result<T, D::Error> {
    let number = Some(u64::deserialize(deserializer)?);
    let number = number.filter(|number| (LEAST..=MOST).contains(number));
    let number = number.and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| D::Error::custom(format!("it must be from {LEAST} to {MOST}")))
}

#[expect(clippy::cast_precision_loss, reason = "limits have few digits")]
fn real<'de, D: Deserializer<'de>, const LEAST: u64, const MOST: u64>(
    deserializer: D,
) -> Result<f64, D::Error> {
    let number = f64::deserialize(deserializer)?;
    if (LEAST as f64..=MOST as f64).contains(&number) {
        return Ok(number);
    }
    Err(D::Error::custom(format!(
        "it must be from {LEAST} to {MOST}"
    )))
}

/// A float as wide as the sizes.
fn size_like<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    real::<_, 1, 1_000_000_000_000>(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Spec {
        Spec::parse(text, Path::new("folder/some.toml")).unwrap()
    }

    fn arc(name: &str) -> Spec {
        Spec {
            name: name.to_owned(),
            ..Spec::default()
        }
    }

    #[test]
    fn what_is_left_out_is_as_in_arc() {
        assert_eq!(parsed(""), arc("some"));
        let tree = Shape {
            depth: 3,
            ..ARC_TREE
        };
        assert_eq!(
            parsed("[tree]\ndepth = 3\n"),
            Spec {
                tree,
                ..arc("some")
            }
        );
        let text = include_str!("../../../../docs/bench/fileset.toml");
        let documented = Spec::parse(text, Path::new("arc.toml")).unwrap();
        assert_eq!(
            (&documented, Spec::named("arc")),
            (&arc("arc"), Some(arc("arc")))
        );
    }

    #[test]
    fn distributions_are_read() {
        let of = |text: &str| parsed(text).sizes;
        let fixed = of("sizes.fixed.bytes = 4096");
        assert_eq!(
            (fixed.distribution, fixed.min),
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
            ("2037-12-30", 2_145_744_000),
        ] {
            let times = format!("times = {{ from = {day}, to = 2037-12-31 }}");
            assert_eq!(parsed(&times).times.from, seconds, "{day}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_reported_with_its_line() {
        let refused = |text: &str, line: usize, why: &str| {
            let error = Spec::parse(text, Path::new("some.toml")).unwrap_err();
            let quoted = text.lines().nth(line - 1).unwrap();
            let expected = format!("cannot use `some.toml`, line {line}, `{quoted}`: {why}");
            let found = error.to_string();
            assert!(found.starts_with(&expected), "{text:?}: {found}");
        };
        let negative = "invalid value: integer `-1`, expected u64";
        refused("[sizes.fixed]\nbytes = -1", 2, negative);
        let field = "unknown field `depht`, expected one of ";
        refused("\n[tree]\ndepht = 2", 3, field);
        refused("text = 0.5", 1, "unknown field `text`, expected one of ");
        refused("[content]\ntext = 1.5", 2, "it must be from 0 to 1");
        refused("[content]\ntext = nan", 2, "it must be from 0 to 1");
        let much = "invalid type: string \"much\"";
        refused("[content]\ntext = \"much\"", 2, much);
        refused("[sizes.lognormal]\nmedian = 5", 1, "missing field `sigma`");
        let neither = "either `median` or `mean` must be there";
        refused("[sizes.lognormal]\nsigma = 1", 1, neither);
        let sizes = "sizes must be from 0 to 1099511627776";
        refused("[sizes.uniform]\nmin = 7\nmax = 5", 1, sizes);
        let variant = "unknown variant `normal`, expected";
        refused("[sizes.normal]\nmean = 7", 1, variant);
        let order = "it must be the least and the most files";
        refused("[tree]\nfiles_per_directory = [9, 3]", 2, order);
        refused("[tree]\nfan_out = 0", 2, "it must be from 1 to 1000000000");
        let times = |from: &str, to: &str| format!("[times]\nfrom = {from}\nto = {to}");
        let later = "`to` must be later than `from`";
        refused(&times("2023-01-01", "2023-01-01"), 1, later);
        let day = "it must be a day from 1970-01-01 to 2037-12-31, without a time";
        refused(&times("1969-12-31", "2023-01-01"), 2, day);
        refused(&times("2023-01-01T00:00:00Z", "2024-01-01"), 2, day);
        refused("[tree\n", 1, "unclosed table");
    }

    #[test]
    fn a_spec_is_a_name_or_a_file() {
        let find = |text: &str| Spec::find(OsStr::new(text));
        assert_eq!(find("flat").unwrap().name, "flat");
        let error = find("ark").unwrap_err().to_string();
        let neither = "it is neither one of `arc`, `flat`, `deep` nor a file";
        assert_eq!(error, format!("there is no spec `ark`: {neither}"));
        assert!(matches!(find("no/such.toml"), Err(BenchError::Sys(_))));
    }
}
