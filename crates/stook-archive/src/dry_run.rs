//! What a run would write: it is surveyed, and nothing else.

use std::sync::Mutex;

use stook_index::{Index, VolumeId};
use stook_sys::Owners;

use crate::ArchiveError;
use crate::compress::encoding_of;
use crate::create::{WriteOptions, WriteReport};
use crate::mutex::lock;
use crate::not_visited::NotVisited;
use crate::observer::Observer;
use crate::plan::{DEFAULT_VOLUME_BYTES, Plan, VolumeSplitter};
use crate::recovery::{Blank, next_volume};
use crate::session::Session;

impl Session<'_> {
    /// Reports what a run would write.
    pub(crate) fn dry_run(
        &self,
        index: Option<&Mutex<Index>>,
    ) -> Result<WriteReport, ArchiveError> {
        let name_table = index
            .map(|index| {
                let WriteOptions { metadata, jobs, .. } = self.options;
                metadata.load_names(&lock(index), None, *jobs)
            })
            .transpose()?;
        let found = self.survey_against(index, name_table.as_ref(), None)?;
        let not_visited = NotVisited::new(&found, &self.options.filter);
        let unlikely = self.unlikely_deletions(index, name_table.as_ref(), None, &not_visited)?;
        if let Some(unlikely) = unlikely {
            self.observer
                .noted(&format!("the run would stop: {unlikely}"));
        }
        let report = WriteReport {
            entries: found.entries,
            unchanged: found.unchanged,
            metadata_changed: found.metadata_changed,
            ..WriteReport::default()
        };
        let plan = Plan::from(found);
        let (first, limit, deleted, zstd) = match index.map(lock) {
            Some(index) => {
                let deleted = self.count_deleted(&index, name_table.as_ref(), &not_visited)?;
                let blank = match index.unfinished_run()? {
                    Some(_) => Blank::Own,
                    None => Blank::Foreign,
                };
                (
                    next_volume(&self.folder, &index, blank)?,
                    index.config()?.maxsize,
                    deleted,
                    self.zstd(Some(&index))?,
                )
            }
            None => {
                let first = VolumeId::plain(0);
                (first, DEFAULT_VOLUME_BYTES, 0, self.zstd(None)?)
            }
        };
        let splitter = VolumeSplitter {
            dialect: self.options.dialect,
            limit: self.options.volume_bytes.unwrap_or(limit),
            encoding: encoding_of(zstd),
        };
        let plan = plan.summary(first, splitter, &Owners::default(), deleted);
        Ok(WriteReport {
            plan: Some(plan),
            failed: self.observer.failures(),
            ..report
        })
    }
}
