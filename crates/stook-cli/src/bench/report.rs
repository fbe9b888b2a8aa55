//! `stook bench report`: reads results, writes the page and the figures.

use std::io::ErrorKind;
use std::path::Path;

use stook_bench::figure::Figure;
use stook_bench::{BenchError, Remedy, Results, read_results, report};
use stook_sys::replace_file;

use crate::args::{Common, ReportArgs};
use crate::exit::{CliError, Ending};
use crate::output;
use crate::report::{Line, Page, Summary};

/// The mark of a page stands within its first bytes.
const LOOKED_AT: usize = 1024;

pub(crate) fn report(args: &ReportArgs, common: &Common) -> Result<Ending, CliError> {
    let mut runs: Vec<Results> = Vec::new();
    for path in &args.results {
        runs.extend(read_results(path)?);
    }
    refuse_other_files(&args.output)?;
    let page = report::page(&runs);
    replace_file(&args.output, page.as_bytes())?;
    let figures = match &args.figures {
        Some(folder) => write_figures(folder, &report::figures(&runs))?,
        None => 0,
    };
    let made = Page {
        runs: runs.len(),
        bytes: page.len(),
        figures,
    };
    let text = made.text(&args.output, args.figures.as_deref());
    if common.json {
        output::line(&Line::Summary(Summary::Page(made)))?;
    } else if !common.quiet {
        output::message(&text);
    }
    Ok(Ending::Done)
}

/// The page is made anew by the same command again and again, and may be replaced; raw samples, which a slip of the
/// fingers names as the page, may not.
fn refuse_other_files(output: &Path) -> Result<(), CliError> {
    let begin = match stook_sys::read_text(output) {
        Ok(text) => text,
        Err(error) if error.source.kind() == ErrorKind::NotFound => return Ok(()),
        // Bytes that are no text are no page.
        Err(error) if error.source.kind() == ErrorKind::InvalidData => "?".to_owned(),
        Err(error) => return Err(error.into()),
    };
    let is_page = begin.find(report::MARK).is_some_and(|at| at < LOOKED_AT);
    if begin.is_empty() || is_page {
        return Ok(());
    }
    Err(CliError::Bench(BenchError::Refused {
        what: format!(
            "cannot replace `{}`: it is not a page that stook made",
            stook_sys::display_path(output)
        ),
        remedy: Some(Remedy::NameOtherFile),
    }))
}

fn write_figures(folder: &Path, figures: &[Figure]) -> Result<usize, CliError> {
    stook_sys::create_directory(folder)?;
    for figure in figures {
        let path = folder.join(format!("{}.svg", figure.name));
        replace_file(&path, figure.svg().as_bytes())?;
    }
    Ok(figures.len())
}
