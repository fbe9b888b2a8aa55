//! Plans whose parts are built anywhere: the parts, and what `plan`, `build` and `commit` did.

use std::os::unix::ffi::OsStrExt;

use serde::Serialize;
use stook_archive::{
    AbandonReport, BuildReport, CommitReport, PlanReport, PlanSummary, PlannedPart, WriteReport,
};
use stook_sys::display_bytes;

use super::JsonPath;
use super::counts::{also, failed};
use super::summary::OTHER_METADATA;
use crate::number::{count, size};

/// A part that is to be built.
#[derive(Serialize)]
pub(crate) struct Part {
    #[serde(flatten)]
    path: JsonPath,
    members: u64,
    bytes: u64,
    volume_bytes: u64,
    retry: bool,
}

impl Part {
    pub(crate) fn new(part: &PlannedPart) -> Self {
        Self {
            path: JsonPath::new(part.path.as_os_str().as_bytes()),
            members: part.members,
            bytes: part.bytes,
            volume_bytes: part.volume_bytes,
            retry: part.is_retry,
        }
    }
}

/// What `plan` found.
#[derive(Serialize)]
pub(crate) struct Planned {
    entries: u64,
    unchanged: u64,
    metadata: u64,
    members: u64,
    bytes: u64,
    parts: usize,
    deleted: u64,
    failed: u64,
    reserved: bool,
    dry_run: bool,
}

impl Planned {
    pub(crate) fn new(report: &PlanReport) -> Self {
        Self {
            entries: report.entries,
            unchanged: report.unchanged,
            metadata: report.metadata_changed,
            members: report.members,
            bytes: report.bytes,
            parts: report.parts.len(),
            deleted: report.deleted,
            failed: report.failed,
            reserved: report.is_reserved,
            dry_run: false,
        }
    }

    /// The same of a dry run, with one part for each volume.
    pub(crate) fn dry_run(report: &WriteReport, plan: &PlanSummary) -> Self {
        Self {
            entries: report.entries,
            unchanged: report.unchanged,
            metadata: report.metadata_changed,
            members: plan.members,
            bytes: plan.bytes,
            parts: plan.volumes.len(),
            deleted: plan.deleted,
            failed: report.failed,
            reserved: false,
            dry_run: true,
        }
    }

    pub(crate) fn text(&self) -> String {
        let ends = also(self.metadata, OTHER_METADATA) + &failed(self.failed);
        if self.members == 0 && self.deleted == 0 && self.dry_run {
            return format!("nothing to archive, so the archive would not be reserved{ends}");
        }
        if !self.reserved && !self.dry_run {
            return format!("nothing to archive, so the archive is not reserved{ends}");
        }
        let (did, reserved) = match self.dry_run {
            true => ("would plan", ""),
            false => ("planned", "; the archive is reserved until `stook commit`"),
        };
        format!(
            "{did} {}, {}, in {}{}{reserved}{ends}",
            count(self.members, "entry", "entries"),
            size(self.bytes),
            count(self.parts as u64, "part", "parts"),
            also(self.deleted, "deleted"),
        )
    }
}

/// What `build` made.
#[derive(Serialize)]
pub(crate) struct Built {
    #[serde(flatten)]
    path: JsonPath,
    members: u64,
    bytes: u64,
    volume_bytes: u64,
    overflowed: u64,
    failed: u64,
}

impl Built {
    pub(crate) fn new(report: &BuildReport) -> Self {
        Self {
            path: JsonPath::new(report.built.as_os_str().as_bytes()),
            members: report.members,
            bytes: report.bytes,
            volume_bytes: report.volume_bytes,
            overflowed: report.overflowed,
            failed: report.failed,
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "built {}, {}{}{}",
            count(self.members, "entry", "entries"),
            size(self.bytes),
            also(self.overflowed, "did not fit"),
            failed(self.failed)
        )
    }
}

/// What `commit` took into the archive.
#[derive(Serialize)]
pub(crate) struct Committed {
    members: u64,
    bytes: u64,
    volumes: u64,
    deleted: u64,
    parts: usize,
    failed: u64,
    already_committed: bool,
    /// What is left in the plan directory.
    foreign: Vec<JsonPath>,
}

impl Committed {
    pub(crate) fn new(report: &CommitReport) -> Self {
        Self {
            members: report.members,
            bytes: report.bytes,
            volumes: report.volumes,
            deleted: report.deleted,
            parts: report.remaining.len(),
            failed: report.failed,
            already_committed: report.was_committed,
            foreign: report
                .foreign
                .iter()
                .map(|name| JsonPath::new(name))
                .collect(),
        }
    }

    pub(crate) fn text(&self) -> String {
        if self.already_committed {
            let failed = failed(self.failed);
            let stays = staying(&self.foreign, "stays");
            return format!("everything was committed already; removed the plan{failed}{stays}");
        }
        let mut text = format!(
            "committed {}, {}, in {}{}",
            count(self.members, "entry", "entries"),
            size(self.bytes),
            count(self.volumes, "volume", "volumes"),
            also(self.deleted, "deleted")
        );
        if self.parts > 0 {
            let parts = count(self.parts as u64, "part", "parts");
            text += &format!("; {parts} to build with what failed or did not fit");
        }
        text + &failed(self.failed) + &staying(&self.foreign, "stays")
    }
}

/// Names what is left in the plan directory.
fn staying(names: &[JsonPath], why: &str) -> String {
    let each = names.iter().map(|name| {
        let name = display_bytes(name.path.as_bytes());
        format!("; `stook.plan/{name}` {why}")
    });
    each.collect()
}

/// What `commit --abandon` gave up.
#[derive(Serialize)]
pub(crate) struct Abandoned {
    parts: u64,
    built: u64,
    members: Option<u64>,
    bytes: Option<u64>,
    archive_removed: bool,
    /// What is left in the plan directory.
    foreign: Vec<JsonPath>,
}

impl Abandoned {
    pub(crate) fn new(report: &AbandonReport) -> Self {
        Self {
            parts: report.parts,
            built: report.built,
            members: report.planned.map(|(members, _)| members),
            bytes: report.planned.map(|(_, bytes)| bytes),
            archive_removed: report.is_archive_gone,
            foreign: report
                .foreign
                .iter()
                .map(|name| JsonPath::new(name))
                .collect(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!("abandoned {}", count(self.parts, "part", "parts"));
        if let (Some(members), Some(bytes)) = (self.members, self.bytes) {
            let members = count(members, "entry", "entries");
            text += &format!(" with {members}, {}", size(bytes));
        }
        text += &also(self.built, "built");
        if self.archive_removed {
            text += "; the archive held nothing else, and is removed";
        }
        text + &staying(&self.foreign, "was not made by stook, and stays")
    }
}
