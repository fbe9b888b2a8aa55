//! Sentences and names out of figures.

use serde_json::Value;

use crate::figure::{clean, grouped, three_digits, with_groups};

/// Returns a number and its noun.
pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    let noun = if number == 1 { one } else { many };
    format!("{} {noun}", grouped(number))
}

/// Returns names as a sentence has them: `a, b and c`.
pub(super) fn listed(names: &[String]) -> String {
    match names {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

/// Returns a text of at most so many letters: the beginning of a longer one, with an ellipsis.
pub(super) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{kept}…")
}

/// Returns a text with a capital letter in front and a full stop behind.
pub(super) fn sentence(text: &str) -> String {
    let text = clean(text);
    let mut letters = text.chars();
    let first: String = letters
        .next()
        .into_iter()
        .flat_map(char::to_uppercase)
        .collect();
    format!("{first}{}.", letters.as_str())
}

/// Returns a name of JSON as words.
pub(super) fn words(name: &str) -> String {
    clean(name).replace('_', " ")
}

/// Returns a whole number with commas, a fraction with three digits.
pub(super) fn number(value: f64) -> String {
    match value.fract() == 0.0 {
        true => with_groups(&format!("{value:.0}")),
        false => three_digits(value),
    }
}

/// Returns a value of JSON as a reader likes it: texts without quotes, lists with blanks.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => clean(text),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<String>>().join(" "),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Null => "none".to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Object(_) => clean(&value.to_string()),
    }
}

/// Returns the geometric mean of ratios, their least and their greatest; None of none.
pub(super) fn geometric(ratios: impl IntoIterator<Item = f64>) -> Option<(f64, f64, f64)> {
    let usable = ratios
        .into_iter()
        .filter(|ratio| *ratio > 0.0 && ratio.is_finite());
    let start = (0.0, 0.0, f64::INFINITY, 0.0_f64);
    let (count, logarithms, least, most) =
        usable.fold(start, |(count, sum, least, most), ratio| {
            (
                count + 1.0,
                sum + ratio.ln(),
                ratio.min(least),
                ratio.max(most),
            )
        });
    (count > 0.0).then(|| ((logarithms / count).exp(), least, most))
}

/// Returns names for files that look like these texts: letters, digits and dashes, no two alike.
pub(super) fn file_names(texts: &[String]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for text in texts {
        let letters = text
            .chars()
            .take(40)
            .collect::<String>()
            .to_ascii_lowercase();
        let words = letters.split(|letter: char| !letter.is_ascii_alphanumeric());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let name = match words.is_empty() {
            true => "unnamed".to_owned(),
            false => words.join("-"),
        };
        let behind = format!("{name}-");
        let alike = names
            .iter()
            .filter(|other| **other == name || other.starts_with(&behind));
        let number = alike.count() + 1;
        names.push(match names.contains(&name) {
            true => format!("{name}-{number}"),
            false => name,
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_make_a_sentence() {
        let names = ["a", "b", "c"].map(ToOwned::to_owned);
        assert_eq!(
            (listed(&names), listed(&names[..1])),
            ("a, b and c".to_owned(), "a".to_owned())
        );
        assert_eq!(count(1, "round", "rounds"), "1 round");
        assert_eq!(count(12_000, "file", "files"), "12,000 files");
        assert_eq!(
            (shortened("añc", 3), shortened("añcd", 3)),
            ("añc".to_owned(), "añ…".to_owned())
        );
        assert_eq!(sentence("ñ is"), "Ñ is.");
    }

    #[test]
    fn twice_and_half_are_equal_in_the_mean() {
        let (mean, low, high) = geometric([2.0, 0.5, 0.0]).unwrap();
        assert!((mean - 1.0).abs() < 1e-12);
        assert_eq!((low, high), (0.5, 2.0));
        assert_eq!(geometric([0.0]), None);
    }

    #[test]
    fn names_of_files_are_plain_and_differ() {
        let texts = ["tar", "Tar!", "a/b c", "日本", "", "tar"].map(ToOwned::to_owned);
        let names = ["tar", "tar-2", "a-b-c", "unnamed", "unnamed-2", "tar-3"];
        assert_eq!(file_names(&texts), names);
    }
}
