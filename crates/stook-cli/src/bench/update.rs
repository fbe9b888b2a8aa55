//! `stook bench update`: the study, its tables, and its files.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use stook_bench::update::{
    ArchivedOptions, ArchivedStudy, Caches, Finish, Placement, StudyStore, Tool, UpdateOptions,
    UpdateStudy, csv_header, csv_row, tables,
};
use stook_bench::{BenchError, Header, Observer, Results, report};
use stook_sys::Context;

use super::observer::BenchObserver;
use super::results::{ResultsWriter, now, or_header};
use crate::args::{BenchUpdateArgs, Common};
use crate::exit::{CliError, Ending};
use crate::output;
use crate::progress::Reporter;
use crate::report::Measured;
use crate::store_settings::settings;
use crate::stores;

const COMMAND: &str = "bench update";

pub(crate) fn update(args: &BenchUpdateArgs, common: &Common) -> Result<Ending, CliError> {
    let reporter = Reporter::new(common);
    let (study, csv) = or_header(prepared(args, common, &reporter), COMMAND, common)?;
    let writer = ResultsWriter::begin(COMMAND, study.header(), &args.save, common)
        .inspect_err(|_| csv.remove())?;
    let observer = BenchObserver::new(&reporter, common).keeping(|sample| writer.keep(sample));
    let unequal = study.run(&observer);
    let results = writer.results();
    // What a study has found until it failed is kept, too; and it is printed, even if it cannot be kept.
    let mut kept = csv.write(&results);
    if let (Some(folder), true) = (&args.figures, kept.is_ok()) {
        kept = draw(folder, results.clone());
    }
    let unequal = writer.finish(unequal)?;
    let measured = Measured {
        samples: results.samples.len(),
        unequal: Some(unequal),
        ..Measured::default()
    };
    writer.print(measured, &tables(&results))?;
    kept?;
    Ok(ending(unequal))
}

/// One of the two studies.
enum Study {
    Update(Box<UpdateStudy>),
    Archived(Box<ArchivedStudy>),
}

impl Study {
    fn prepare(
        args: &BenchUpdateArgs,
        tools: &[Tool],
        observer: &dyn Observer,
    ) -> Result<Self, CliError> {
        Ok(match (&args.archive, &args.source) {
            (Some(archive), Some(source)) => {
                let options = archived_options(args, archive, source, tools)?;
                Self::Archived(Box::new(ArchivedStudy::prepare(options, &now(), observer)?))
            }
            _ => {
                let options = options(args, tools)?;
                Self::Update(Box::new(UpdateStudy::prepare(options, &now(), observer)?))
            }
        })
    }

    fn header(&self) -> &Header {
        match self {
            Self::Update(study) => study.header(),
            Self::Archived(study) => study.header(),
        }
    }

    fn run(&self, observer: &dyn Observer) -> Result<u64, BenchError> {
        match self {
            Self::Update(study) => study.run(observer),
            Self::Archived(study) => study.run(observer),
        }
    }
}

/// Makes sure that all can be kept, and begins the files for it.
fn prepared(
    args: &BenchUpdateArgs,
    common: &Common,
    reporter: &Reporter,
) -> Result<(Study, Csv), CliError> {
    let observer = BenchObserver::new(reporter, common);
    let tools = tools(args)?;
    let study = Study::prepare(args, &tools, &observer)?;
    if let Some(folder) = &args.figures {
        stook_sys::create_directory(folder)?;
    }
    let csv = Csv::begin(args.csv.as_deref(), &tools)?;
    Ok((study, csv))
}

/// Draws the figures that the report's page has.
fn draw(folder: &Path, results: Results) -> Result<(), CliError> {
    if results.samples.is_empty() {
        return Ok(());
    }
    for figure in report::figures(&[results]) {
        let path = folder.join(format!("{}.svg", figure.name));
        stook_sys::write_file(&path, figure.svg().as_bytes())?;
    }
    Ok(())
}

fn ending(unequal: u64) -> Ending {
    if unequal == 0 {
        return Ending::Done;
    }
    let text = format!("{unequal} trees and lists are not the same as their source");
    output::error(&text, None);
    Ending::SomeFailed
}

/// Returns the tools that were named, or else those that can do it and are likely to be there.
fn tools(args: &BenchUpdateArgs) -> Result<Vec<Tool>, CliError> {
    let usual: &[&str] = match args.archive {
        None => &["stook", "tar"],
        Some(_) => &["stook"],
    };
    let usual = || usual.iter().map(ToString::to_string).collect();
    let named = match args.tools.is_empty() {
        true => usual(),
        false => args.tools.clone(),
    };
    Ok(Tool::parse(&named)?)
}

fn options(args: &BenchUpdateArgs, tools: &[Tool]) -> Result<UpdateOptions, CliError> {
    let three = || BenchError::usage("--dirs takes three directories");
    let directories = <[PathBuf; 3]>::try_from(args.dirs.clone());
    Ok(UpdateOptions {
        tools: tools.to_vec(),
        stook: own_program()?,
        directories: directories.or(Err(three()))?,
        repeats: args.repeats,
        work: args.work.clone(),
        placement: if args.beside {
            Placement::Beside
        } else {
            Placement::Over
        },
        caches: caches(args),
        finish: if args.sync {
            Finish::OnDisk
        } else {
            Finish::Ended
        },
        store: args.store.as_deref().map(study_store).transpose()?,
    })
}

fn archived_options(
    args: &BenchUpdateArgs,
    archive: &Path,
    source: &Path,
    tools: &[Tool],
) -> Result<ArchivedOptions, CliError> {
    Ok(ArchivedOptions {
        tools: tools.to_vec(),
        stook: own_program()?,
        archive: archive.to_owned(),
        source: source.to_owned(),
        add: args.add.clone(),
        repeats: args.repeats,
        work: args.work.clone(),
        caches: caches(args),
    })
}

fn own_program() -> Result<PathBuf, CliError> {
    Ok(std::env::current_exe().context("find", "the running program")?)
}

fn caches(args: &BenchUpdateArgs) -> Caches {
    match args.cold {
        true => Caches::Cold,
        false => Caches::Hot,
    }
}

fn study_store(url: &str) -> Result<StudyStore, CliError> {
    Ok(StudyStore {
        location: stores::location_of(url)?,
        url: url.to_owned(),
        settings: settings()?,
    })
}

/// The files that `--csv` names, made before the study begins: one that cannot be made ends it.
struct Csv {
    /// Each with the tool that it is for, if it is for one.
    files: Vec<(Option<String>, PathBuf, File)>,
}

impl Csv {
    const TOOL: &str = "{tool}";

    fn begin(path: Option<&Path>, tools: &[Tool]) -> Result<Self, CliError> {
        let Some(path) = path else {
            return Ok(Self { files: Vec::new() });
        };
        let names: Vec<(Option<String>, PathBuf)> = match path.to_str() {
            Some(text) if text.contains(Self::TOOL) => tools
                .iter()
                .map(|tool| {
                    let path = text.replace(Self::TOOL, &tool.name);
                    (Some(tool.name.clone()), path.into())
                })
                .collect(),
            _ => vec![(None, path.to_owned())],
        };
        let mut begun = Self { files: Vec::new() };
        for (tool, path) in names {
            let file = stook_sys::create_new_file(&path).inspect_err(|_| begun.remove())?;
            begun.files.push((tool, path, file));
        }
        Ok(begun)
    }

    /// Takes the files away again, as nothing was measured.
    fn remove(&self) {
        for (_, path, _) in &self.files {
            // The error to report is why nothing was measured.
            let _ = stook_sys::remove_file(path);
        }
    }

    fn write(&self, results: &Results) -> Result<(), CliError> {
        for (tool, path, file) in &self.files {
            let rows = results.samples.iter();
            let rows = rows.filter(|sample| {
                tool.as_deref()
                    .is_none_or(|tool| tool == sample.label("tool"))
            });
            let rows = rows.map(|sample| csv_row(&results.header, sample));
            let text: String = std::iter::once(csv_header()).chain(rows).collect();
            write_all(file, path, &text)?;
        }
        Ok(())
    }
}

fn write_all(mut file: &File, path: &Path, text: &str) -> Result<(), CliError> {
    Ok(file.write_all(text.as_bytes()).context("write", path)?)
}
