//! Which of several results of one part stays, and when.

use std::io;
use std::path::{Path, PathBuf};

use stook_sys::{SysError, exists, rename_to_new, sync_directory};

use super::BuildReport;
use super::build_result::{BuildResult, read_result};
use super::damage::volume_damage;
use super::directory::{built_name, remove_built, require_built, taken_name};
use super::part::PartHeader;
use crate::ArchiveError;
use crate::observer::{Note, Observer};

/// What was built of a part before.
pub(crate) enum Earlier {
    None,
    Complete(BuildReport),
    /// Members failed.
    Incomplete(BuildReport),
    /// The volume is not whole, or nobody knows what it holds.
    Damaged,
}

/// Looks for what was built of a part before.
///
/// # Errors
/// `NameTaken` if something that stook did not make would have to be replaced; `OtherPlan`, `OtherPart`.
pub(crate) fn earlier(destination: &Path, header: &PartHeader) -> Result<Earlier, ArchiveError> {
    let taken = destination.join(taken_name(header.number));
    if exists(&taken)?.is_some() {
        return of_taken(&taken, destination, header);
    }
    let built = destination.join(built_name(header.number));
    if exists(&built)?.is_none() {
        return Ok(Earlier::None);
    }
    let state = state_of(&built, header)?;
    if !matches!(state, Earlier::Complete(_)) {
        require_built(&built)?;
    }
    Ok(state)
}

/// What a commit has is not built again, which would be for nothing, unless it is damaged.
fn of_taken(
    taken: &Path,
    destination: &Path,
    header: &PartHeader,
) -> Result<Earlier, ArchiveError> {
    // Once the commit has decided, the volume moves into the archive.
    let is_decided = exists(&destination.join("commit"))?.is_some();
    Ok(match state_of(taken, header)? {
        Earlier::Incomplete(report) => Earlier::Complete(report),
        Earlier::Damaged if is_decided => match read_result(taken) {
            Ok(result) => Earlier::Complete(report_on(&result, header, taken.to_owned())?),
            Err(_) => Earlier::Damaged,
        },
        state => state,
    })
}

/// Returns what is in a folder that was built.
fn state_of(path: &Path, header: &PartHeader) -> Result<Earlier, ArchiveError> {
    let result = match read_result(path) {
        Err(ArchiveError::BadPlanFile { source, .. }) if !source.is_unread() => {
            return Ok(Earlier::Damaged);
        }
        other => other?,
    };
    let volume = result.volume.as_ref();
    let damage = volume.map_or(Ok(None), |volume| volume_damage(path, volume.len))?;
    let report = report_on(&result, header, path.to_owned())?;
    Ok(match damage {
        Some(_) => Earlier::Damaged,
        None if result.failed > 0 => Earlier::Incomplete(report),
        None => Earlier::Complete(report),
    })
}

fn report_on(
    result: &BuildResult,
    header: &PartHeader,
    built: PathBuf,
) -> Result<BuildReport, ArchiveError> {
    result.require(header.plan, header.number, &built)?;
    Ok(BuildReport {
        built,
        members: result.members,
        bytes: result.bytes,
        volume_bytes: result.volume.map_or(0, |volume| volume.len),
        failed: result.failed,
        overflowed: result.overflowed.len() as u64,
    })
}

pub(crate) fn remove_building(building: &Path) -> Result<(), ArchiveError> {
    if exists(building)?.is_some() {
        remove_built(building)?;
    }
    Ok(())
}

/// What has just been built of a part, in the folder `building`.
pub(crate) struct NewResult<'a> {
    pub(crate) building: &'a Path,
    pub(crate) destination: &'a Path,
    pub(crate) header: &'a PartHeader,
    pub(crate) result: &'a BuildResult,
}

/// What became of an attempt to give something new the name of what was built before.
enum Replaced {
    Yes,
    /// Another process has put something there meanwhile that has more members, and it stays.
    ByBetter(BuildReport),
    /// Nothing has the name.
    MovedAway,
}

impl NewResult<'_> {
    /// Gives the folder its name, unless what another process has built meanwhile, or what was there before, has more
    /// members. What it replaces has the name of `building` then, or is removed.
    ///
    /// `exchange` is that of [`stook_sys`], or one that cannot.
    pub(crate) fn install(
        &self,
        exchange: impl Fn(&Path, &Path) -> Result<bool, SysError>,
        observer: &dyn Observer,
    ) -> Result<BuildReport, ArchiveError> {
        let built = self.destination.join(built_name(self.header.number));
        let keep = |kept: BuildReport| {
            let more = kept.members - self.result.members;
            observer.note(&Note::KeptBuilt(more));
            Ok(kept)
        };
        match earlier(self.destination, self.header)? {
            Earlier::Complete(report) => return Ok(report),
            Earlier::Incomplete(report) if self.is_worse_than(&report) => return keep(report),
            Earlier::None => {}
            Earlier::Incomplete(_) | Earlier::Damaged => match self.replace(&built, exchange)? {
                Replaced::Yes => {
                    sync_directory(self.destination)?;
                    return report_on(self.result, self.header, built);
                }
                Replaced::ByBetter(report) => return keep(report),
                Replaced::MovedAway => {}
            },
        }
        self.give_name(built)
    }

    fn is_worse_than(&self, other: &BuildReport) -> bool {
        self.result.members < other.members
    }

    /// Exchanges the two; where the file system cannot, what was there before gets another name.
    fn replace(
        &self,
        built: &Path,
        exchange: impl Fn(&Path, &Path) -> Result<bool, SysError>,
    ) -> Result<Replaced, ArchiveError> {
        match exchange(self.building, built) {
            Ok(true) => {}
            // For a moment there is none.
            Ok(false) => {
                return match rename_to_new(built, &self.before()) {
                    Err(error) if !error.is_not_found() => Err(error.into()),
                    _ => Ok(Replaced::MovedAway),
                };
            }
            // Another process is replacing it, or a commit has taken it.
            Err(error) if error.is_not_found() => return Ok(Replaced::MovedAway),
            Err(error) => return Err(error.into()),
        }
        // Another process may have replaced what was looked at.
        match state_of(self.building, self.header) {
            Ok(Earlier::None | Earlier::Damaged) => Ok(Replaced::Yes),
            Ok(Earlier::Complete(report) | Earlier::Incomplete(report))
                if !self.is_worse_than(&report) =>
            {
                Ok(Replaced::Yes)
            }
            better => {
                exchange(self.building, built)?;
                Ok(match better? {
                    Earlier::Complete(report) | Earlier::Incomplete(report) => {
                        let built = built.to_owned();
                        Replaced::ByBetter(BuildReport { built, ..report })
                    }
                    Earlier::None | Earlier::Damaged => Replaced::Yes,
                })
            }
        }
    }

    /// Where what was built before is meanwhile, if the file system cannot exchange names.
    fn before(&self) -> PathBuf {
        self.building.with_extension("before")
    }

    fn give_name(&self, built: PathBuf) -> Result<BuildReport, ArchiveError> {
        let before = self.before();
        match rename_to_new(self.building, &built) {
            // Another process was quicker.
            Err(error) if error.source.kind() == io::ErrorKind::AlreadyExists => {
                remove_building(&before)?;
                report_on(&read_result(&built)?, self.header, built)
            }
            Err(error) => {
                let _ = rename_to_new(&before, &built);
                Err(error.into())
            }
            Ok(()) => {
                sync_directory(self.destination)?;
                remove_building(&before)?;
                report_on(self.result, self.header, built)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use stook_sys::exchange;
    use stook_testkit::TempDir;

    use super::super::build_result::write_result;
    use super::super::tests::a_header;
    use super::*;
    use crate::observer::Silent;

    /// Something that was built, of so many members, two of which failed or not.
    fn built(path: &Path, members: u64, failed: u64) -> BuildResult {
        let PartHeader { plan, number, .. } = a_header();
        let result = BuildResult {
            plan: Some(plan),
            number,
            members,
            failed,
            ..BuildResult::default()
        };
        fs::create_dir(path).unwrap();
        write_result(path, &result).unwrap();
        result
    }

    fn members(path: &Path) -> u64 {
        read_result(path).unwrap().members
    }

    #[test]
    fn a_better_result_that_another_process_put_there_meanwhile_stays() {
        let folder = TempDir::new().unwrap();
        let (building, there) = (
            folder.join("building-000003-1-1"),
            folder.join("built-000003"),
        );
        let result = built(&building, 2, 3);
        built(&there, 4, 1);
        let new = NewResult {
            building: &building,
            destination: folder.path(),
            header: &a_header(),
            result: &result,
        };
        // As if it had not been there yet when the process looked.
        match new.replace(&there, exchange).unwrap() {
            Replaced::ByBetter(report) => {
                assert_eq!((report.members, report.built), (4, there.clone()));
            }
            Replaced::Yes => panic!("the better result is gone"),
            Replaced::MovedAway => return stook_testkit::skip!("names cannot be exchanged here"),
        }
        assert_eq!((members(&there), members(&building)), (4, 2));
    }

    #[test]
    fn where_names_cannot_be_exchanged_the_better_result_gets_the_name_all_the_same() {
        let folder = TempDir::new().unwrap();
        let (building, there) = (
            folder.join("building-000003-1-1"),
            folder.join("built-000003"),
        );
        for (new_members, expected) in [(2, 3), (5, 5)] {
            let result = built(&building, new_members, 1);
            if !there.exists() {
                built(&there, 3, 1);
            }
            let new = NewResult {
                building: &building,
                destination: folder.path(),
                header: &a_header(),
                result: &result,
            };
            let report = new.install(|_, _| Ok(false), &Silent).unwrap();
            assert_eq!((report.members, report.built), (expected, there.clone()));
            assert_eq!(members(&there), expected);
            remove_building(&building).unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }
    }
}
