//! Stores of archives: from what was typed to an open store, and `push`, `pull` and `status`.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use stook_archive::{
    Archive, ArchiveError, AsOf, ListOptions, PullOptions, PullReport, StoreOptions, TransferError,
    VolumeId,
};
use stook_store::{Location, Proof, Store};

use crate::args::{Common, ProofArg, PullArgs, PushArgs, SendArgs, StatusArgs};
use crate::exit::{CliError, Ending, ending_with, some_failed};
use crate::options;
use crate::progress::{Reporter, observed, observed_sending};
use crate::report::{ArchiveStatus, Line, Pulled, Sent, StoredVolume, Summary};
use crate::size::{self, Bare};
use crate::stores;

/// Returns how to send the volumes of an archive; None if it has no store and none was named.
pub(crate) fn send_options(
    args: &SendArgs,
    archive: &Path,
) -> Result<Option<StoreOptions>, CliError> {
    let Some((place, store)) = place(args.place.store.as_deref(), archive)? else {
        return Ok(None);
    };
    let defaults = StoreOptions::new(store, place);
    Ok(Some(StoreOptions {
        transfers: args.transfers.map_or(defaults.transfers, usize::from),
        spool_bytes: spool_bytes(args.spool_size.as_deref())?,
        keeps_volumes: args.keep_volumes,
        proof: args.proof.map(proof),
        changes_store: args.change_store,
        ..defaults
    }))
}

/// Returns what `--spool-size` says.
pub(crate) fn spool_bytes(typed: Option<&str>) -> Result<Option<u64>, CliError> {
    let parse = |text: &str| size::parse(text, Bare::Refused);
    options::size_option("--spool-size", typed, parse)
}

fn proof(typed: ProofArg) -> Proof {
    match typed {
        ProofArg::Size => Proof::Size,
        ProofArg::Hashed => Proof::HashedInTransfer,
        ProofArg::ReadBack => Proof::ReadBack,
    }
}

/// What was typed, else what the archive remembers, with its store.
type Place = (String, Arc<dyn Store>);

fn place(typed: Option<&str>, archive: &Path) -> Result<Option<Place>, CliError> {
    let recorded = || -> Result<Option<String>, CliError> {
        if !options::has_index(archive) {
            return Ok(None);
        }
        Ok(options::open(archive)?.store_place()?)
    };
    match (typed, recorded()?) {
        (Some(typed), _) if stores::is_none(typed) => Ok(None),
        (Some(typed), recorded) => {
            let location = stores::location_of(typed)?;
            let known = recorded.filter(|recorded| is_place(recorded, &location));
            let store = stores::open(typed)?;
            Ok(Some((
                known.map_or_else(|| stores::lasting_name(location), Ok)?,
                store,
            )))
        }
        (None, Some(recorded)) => {
            let store = stores::open(&recorded)?;
            Ok(Some((recorded, store)))
        }
        (None, None) => Ok(None),
    }
}

/// Returns true if what an archive remembers is this place.
fn is_place(recorded: &str, place: &Location) -> bool {
    Location::parse(recorded).is_ok_and(|recorded| recorded.is_same(place))
}

fn required_place(typed: Option<&str>, archive: &Path) -> Result<Place, CliError> {
    place(typed, archive)?.ok_or_else(no_store)
}

fn no_store() -> CliError {
    ArchiveError::from(TransferError::NoStore).into()
}

/// Fetches the index of an archive of which nothing is here.
pub(crate) fn fetch_missing_index(
    archive: &Path,
    store: &StoreOptions,
    common: &Common,
) -> Result<(), CliError> {
    if options::has_index(archive) {
        return Ok(());
    }
    let only_index = PullOptions {
        only_index: true,
        ..PullOptions::default()
    };
    observed(common, |reporter| {
        stook_archive::pull(archive, store, &only_index, reporter)
    })
    .map(drop)
}

pub(crate) fn push(args: &PushArgs, common: &Common) -> Result<Ending, CliError> {
    let options = send_options(&args.send, &args.archive)?;
    let options = options.ok_or_else(no_store)?;
    let (sent, reporter) = observed_sending(common, true, |reporter| {
        stook_archive::push(&args.archive, &options, reporter)
    })?;
    let summary = Sent::new(&sent);
    let text = summary.text();
    reporter.summary(Summary::Sent(summary), &text)?;
    Ok(some_failed(sent.missing))
}

pub(crate) fn pull(args: &PullArgs, common: &Common) -> Result<Ending, CliError> {
    let (place, store) = required_place(args.place.store.as_deref(), &args.archive)?;
    let options = StoreOptions::new(store, place);
    let (pulled, reporter) = observed(common, |reporter| pull_from(args, &options, reporter))?;
    let summary = Pulled::new(&pulled);
    let text = summary.text();
    reporter.summary(Summary::Pulled(summary), &text)?;
    Ok(some_failed(pulled.failed))
}

/// Fetches the index, and then the volumes that have what the patterns select.
fn pull_from(
    args: &PullArgs,
    options: &StoreOptions,
    reporter: &Reporter,
) -> Result<PullReport, CliError> {
    let only_index = PullOptions {
        only_index: true,
        ..PullOptions::default()
    };
    let fetch = |pull: &PullOptions| stook_archive::pull(&args.archive, options, pull, reporter);
    if args.index {
        return Ok(fetch(&only_index)?);
    }
    if args.patterns.is_empty() {
        return Ok(fetch(&PullOptions::default())?);
    }
    let index = fetch(&only_index)?.index;
    let mut archive = options::open(&args.archive)?;
    let volumes = Some(volumes_of(&mut archive, args, reporter)?);
    let pulled = fetch(&PullOptions {
        volumes,
        only_index: false,
    })?;
    Ok(PullReport { index, ..pulled })
}

fn volumes_of(
    archive: &mut Archive,
    args: &PullArgs,
    reporter: &Reporter,
) -> Result<Vec<VolumeId>, CliError> {
    let list = ListOptions {
        patterns: options::compiled(&args.patterns),
        as_of: AsOf::Now,
        all_versions: false,
    };
    let mut volumes = BTreeSet::new();
    stook_archive::list(archive, &list, reporter, |row| {
        volumes.insert(row.volume);
        ControlFlow::Continue(())
    })?;
    Ok(volumes.into_iter().collect())
}

pub(crate) fn status(args: &StatusArgs, common: &Common) -> Result<Ending, CliError> {
    let archive = options::open(&args.archive)?;
    let place = match args.offline {
        true => None,
        false => place(args.place.store.as_deref(), &args.archive)?,
    };
    let store = place.as_ref().map(|(_, store)| &**store);
    let found = stook_archive::status(&archive, store)?;
    let summary = ArchiveStatus::new(&found);
    let missing = found
        .volumes
        .iter()
        .filter(|volume| volume.is_missing(found.was_asked));
    let ending = some_failed(missing.count() as u64);
    ending_with(ending, |data| {
        for volume in &found.volumes {
            let volume = StoredVolume::new(volume, found.was_asked);
            match common.json {
                true => data.json(&Line::StoredVolume(volume))?,
                false => data.line(&volume.text())?,
            }
        }
        match common.json {
            true => data.json(&Line::Summary(Summary::Status(summary)))?,
            false => data.line(&summary.text())?,
        }
        Ok(())
    })
}
