//! The last line of a command: what was done, in numbers.
//!
//! One vocabulary for all: `entries` are found in a tree, `members` are stored in an archive, `bytes` is their content;
//! `unchanged`, `deleted`, `failed` and `damages` mean the same everywhere.

use std::path::Path;

use serde::Serialize;
use stook_archive::{
    AttributesReport, Change, CheckReport, DiffReport, ExtractReport, ListReport, ReindexReport,
    WriteReport,
};
use stook_bench::PairOutcome;
use stook_bench::fileset::Properties;
use stook_sys::display_path;

use super::counts::{also, failed};
use super::export::{Imaged, Referred};
use super::plan::{Abandoned, Built, Committed, Planned};
use super::profile::{Profiled, Timed};
use super::transfer::{ArchiveStatus, Pulled, Sent};
use super::zodb::{ZodbAnalyzed, ZodbChecked, ZodbReferenced, ZodbReindexed};
use crate::number::{count, grouped, size};
use crate::walk::Figures;

/// What a command did.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Summary {
    /// `create` and `update`.
    Written(Written),
    /// `push`.
    Sent(Sent),
    /// `pull`.
    Pulled(Pulled),
    /// `status`.
    Status(ArchiveStatus),
    /// `plan`.
    Planned(Planned),
    /// `build`.
    Built(Built),
    /// `commit`.
    Committed(Committed),
    /// `commit --abandon`.
    Abandoned(Abandoned),
    /// `diff`.
    Compared(Compared),
    /// `check`.
    Checked(Checked),
    /// `list`.
    Listed(Listed),
    /// `list --runs`.
    ListedRuns(ListedRuns),
    /// `extract`.
    Extracted(Extracted),
    /// `export refs`.
    Referred(Referred),
    /// `export erofs`.
    Imaged(Imaged),
    /// `reindex`.
    Indexed(Indexed),
    /// `reindex --attributes`.
    Filled(Filled),
    /// `walk`.
    Walked(Walked),
    /// `walk --summary`.
    Figures(Box<Figures>),
    /// `copy`.
    Copied(Copied),
    /// `remove`.
    Removed(Removed),
    /// `profile`.
    Profiled(Profiled),
    /// `profile --lines`.
    Timed(Timed),
    /// `bench fs`, `bench cache` and `bench update`.
    Measured(Measured),
    /// `bench pair`.
    Paired(Paired),
    /// `bench fileset`.
    Fileset(Box<Properties>),
    /// `bench report`.
    Page(Page),
    /// `zodb reindex`.
    ZodbReindexed(ZodbReindexed),
    /// `zodb check`.
    ZodbChecked(ZodbChecked),
    /// `zodb analyze`.
    ZodbAnalyzed(ZodbAnalyzed),
    /// `zodb references`.
    ZodbReferenced(ZodbReferenced),
}

/// Entries of which nothing else changed.
pub(super) const OTHER_METADATA: &str = "with another mode or owner";

/// What `create` and `update` wrote, or would write.
#[derive(Serialize)]
pub(crate) struct Written {
    entries: u64,
    unchanged: u64,
    metadata: u64,
    members: u64,
    bytes: u64,
    volumes: u64,
    deleted: u64,
    failed: u64,
    dry_run: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<Sent>,
}

impl Written {
    pub(crate) fn new(report: &WriteReport) -> Self {
        let plan = report.plan.as_ref();
        Self {
            entries: report.entries,
            unchanged: report.unchanged,
            metadata: report.metadata_changed,
            members: plan.map_or(report.members, |plan| plan.members),
            bytes: plan.map_or(report.bytes, |plan| plan.bytes),
            volumes: plan.map_or(report.volumes, |plan| plan.volumes.len() as u64),
            deleted: plan.map_or(report.deleted, |plan| plan.deleted),
            failed: report.failed,
            dry_run: plan.is_some(),
            sent: report.sent.as_ref().map(Sent::new),
        }
    }

    pub(crate) fn text(&self) -> String {
        let sent = self.sent.as_ref().map(Sent::text);
        let sent = sent.map(|text| format!("; {text}")).unwrap_or_default();
        self.archived() + &sent
    }

    fn archived(&self) -> String {
        let is_nothing = self.members == 0 && self.deleted == 0 && self.volumes == 0;
        if is_nothing && !self.dry_run {
            let unchanged = count(self.unchanged, "entry", "entries");
            return format!(
                "nothing to archive, {unchanged} unchanged{}{}",
                also(self.metadata, OTHER_METADATA),
                failed(self.failed)
            );
        }
        let did = if self.dry_run {
            "would archive"
        } else {
            "archived"
        };
        let mut text = format!(
            "{did} {}, {}, in {}",
            count(self.members, "entry", "entries"),
            size(self.bytes),
            count(self.volumes, "volume", "volumes"),
        );
        if !self.dry_run {
            text += &also(self.unchanged, "unchanged");
        }
        text += &also(self.metadata, OTHER_METADATA);
        text + &also(self.deleted, "deleted") + &failed(self.failed)
    }
}

/// What `diff` found.
#[derive(Serialize)]
pub(crate) struct Compared {
    entries: u64,
    new: u64,
    changed: u64,
    metadata: u64,
    deleted: u64,
    unchanged: u64,
    failed: u64,
}

impl Compared {
    pub(crate) fn new(report: &DiffReport) -> Self {
        let of = |wanted: fn(&Change) -> bool| {
            let changes = report.differences.iter();
            changes.filter(|found| wanted(&found.change)).count() as u64
        };
        Self {
            entries: report.entries,
            new: of(|change| matches!(change, Change::New)),
            changed: of(|change| matches!(change, Change::Changed { .. })),
            metadata: of(|change| matches!(change, Change::Metadata(_))),
            deleted: of(|change| matches!(change, Change::Deleted)),
            unchanged: report.unchanged,
            failed: report.failed,
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "{} new, {} changed, {} deleted, {} unchanged{}{}",
            grouped(self.new),
            grouped(self.changed),
            grouped(self.deleted),
            grouped(self.unchanged),
            also(self.metadata, OTHER_METADATA),
            failed(self.failed),
        )
    }
}

/// What `check` read.
#[derive(Serialize)]
pub(crate) struct Checked {
    members: u64,
    bytes: u64,
    volumes: u64,
    volume_md5s: u64,
    damages: u64,
    failed: u64,
}

impl Checked {
    pub(crate) fn new(report: &CheckReport) -> Self {
        Self {
            members: report.members,
            bytes: report.bytes,
            volumes: report.volumes,
            volume_md5s: report.volume_md5s,
            damages: report.damages,
            failed: report.unverified,
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "checked {}, {}",
            count(self.members, "member", "members"),
            size(self.bytes)
        );
        if self.volumes > 0 {
            text += &format!(", in {}", count(self.volumes, "volume", "volumes"));
        }
        text += match self.damages {
            0 => ": no damage".to_owned(),
            damages => format!(": {}", count(damages, "damage", "damages")),
        }
        .as_str();
        text + &also(self.failed, "not verified")
    }
}

/// What `list` printed.
#[derive(Serialize)]
pub(crate) struct Listed {
    members: u64,
    failed: u64,
}

impl Listed {
    pub(crate) fn new(report: &ListReport) -> Self {
        Self {
            members: report.members,
            failed: report.failed,
        }
    }
}

/// What `list --runs` printed.
#[derive(Serialize)]
pub(crate) struct ListedRuns {
    pub(crate) runs: u64,
    pub(crate) failed: u64,
}

/// What `extract` brought back.
#[derive(Serialize)]
pub(crate) struct Extracted {
    members: u64,
    written: u64,
    bytes: u64,
    unchanged: u64,
    failed: u64,
}

impl Extracted {
    pub(crate) fn new(report: &ExtractReport) -> Self {
        Self {
            members: report.members,
            written: report.written,
            bytes: report.bytes,
            unchanged: report.unchanged,
            failed: report.failed,
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "extracted {}, {}{}{}",
            count(self.written, "entry", "entries"),
            size(self.bytes),
            also(self.unchanged, "were there already"),
            failed(self.failed)
        )
    }
}

/// What `reindex` read.
#[derive(Serialize)]
pub(crate) struct Indexed {
    volumes: u64,
    members: u64,
    bytes: u64,
    runs: u64,
    damages: u64,
    failed: u64,
}

impl Indexed {
    pub(crate) fn new(report: &ReindexReport) -> Self {
        Self {
            volumes: report.volumes,
            members: report.members,
            bytes: report.bytes,
            runs: report.runs,
            damages: report.damages,
            failed: report.failed,
        }
    }

    pub(crate) fn text(&self) -> String {
        let damages = match self.damages {
            0 => String::new(),
            damages => format!("; {}", count(damages, "damage", "damages")),
        };
        format!(
            "indexed {}, {}, in {}{damages}{}",
            count(self.members, "member", "members"),
            size(self.bytes),
            count(self.volumes, "volume", "volumes"),
            failed(self.failed)
        )
    }
}

/// What `reindex --attributes` added.
#[derive(Serialize)]
pub(crate) struct Filled {
    volumes: u64,
    members: u64,
    unreadable: u64,
    missing_volumes: u64,
}

impl Filled {
    pub(crate) fn new(report: AttributesReport) -> Self {
        Self {
            volumes: report.volumes,
            members: report.members,
            unreadable: report.unreadable,
            missing_volumes: report.missing_volumes,
        }
    }

    pub(crate) fn text(&self) -> String {
        let unreadable = match self.unreadable {
            0 => String::new(),
            number => format!(
                "; {} not where the index says",
                count(number, "header", "headers")
            ),
        };
        let missing = match self.missing_volumes {
            0 => String::new(),
            number => format!("; {} not here", count(number, "volume", "volumes")),
        };
        format!(
            "added attributes of {} in {}{unreadable}{missing}",
            count(self.members, "member", "members"),
            count(self.volumes, "volume", "volumes")
        )
    }
}

/// What `walk` printed.
#[derive(Serialize)]
pub(crate) struct Walked {
    pub(crate) entries: u64,
    pub(crate) failed: u64,
}

/// What `copy` copied, or would copy.
#[derive(Serialize)]
pub(crate) struct Copied {
    pub(crate) entries: u64,
    pub(crate) directories: u64,
    pub(crate) bytes: u64,
    pub(crate) unchanged: u64,
    /// Entries whose copy was compared.
    pub(crate) verified: Option<u64>,
    #[serde(skip)]
    pub(crate) verified_bytes: u64,
    pub(crate) failed: u64,
    pub(crate) dry_run: bool,
}

impl Copied {
    pub(crate) fn text(&self) -> String {
        let did = if self.dry_run { "would copy" } else { "copied" };
        let mut text = format!(
            "{did} {}, {}{}",
            count(self.entries, "entry", "entries"),
            size(self.bytes),
            also(self.unchanged, "unchanged")
        );
        if self.verified.is_some() {
            text += &format!("; {} verified", size(self.verified_bytes));
        }
        text + &failed(self.failed)
    }
}

/// What `remove` removed, or would remove.
#[derive(Serialize)]
pub(crate) struct Removed {
    pub(crate) entries: u64,
    pub(crate) directories: u64,
    /// Entries that stay though they were to be removed; only with `--archived-in`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) staying: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) damages: Option<u64>,
    pub(crate) failed: u64,
    pub(crate) dry_run: bool,
}

impl Removed {
    pub(crate) fn text(&self) -> String {
        let did = if self.dry_run {
            "would remove"
        } else {
            "removed"
        };
        let mut text = format!(
            "{did} {}, {} of them directories{}",
            count(self.entries, "entry", "entries"),
            grouped(self.directories),
            failed(self.failed)
        );
        if let Some(staying) = self.staying {
            let stay = match (self.dry_run, staying) {
                (true, _) => "would stay",
                (false, 1) => "stays",
                (false, _) => "stay",
            };
            text += &format!("; {} {stay}", grouped(staying));
        }
        text
    }
}

/// What a bench measured.
#[derive(Default, Serialize)]
pub(crate) struct Measured {
    pub(crate) samples: usize,
    /// What makes the figures doubtful.
    pub(crate) warnings: Vec<String>,
    /// What `bench fs` says of them besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<Vec<String>>,
    /// Trees and lists of `bench update` that are not the same as their source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) unequal: Option<u64>,
}

/// What `bench pair` measured.
#[derive(Serialize)]
pub(crate) struct Paired {
    samples: usize,
    /// What all sides showed.
    facts: serde_json::Value,
    warnings: Vec<String>,
}

impl Paired {
    pub(crate) fn of(outcome: &PairOutcome) -> Self {
        let warnings = outcome.warnings.iter();
        let warnings = warnings.map(|(side, warning)| match side.as_str() {
            "" => warning.to_string(),
            side => format!("{side}: {warning}"),
        });
        Self {
            samples: outcome.samples.len(),
            facts: outcome.facts.clone(),
            warnings: warnings.collect(),
        }
    }
}

/// What `bench report` wrote.
#[derive(Serialize)]
pub(crate) struct Page {
    pub(crate) runs: usize,
    pub(crate) bytes: usize,
    pub(crate) figures: usize,
}

impl Page {
    pub(crate) fn text(&self, page: &Path, figures: Option<&Path>) -> String {
        let about = count(self.runs as u64, "run", "runs");
        let text = format!("wrote `{}` about {about}", display_path(page));
        let number = count(self.figures as u64, "figure", "figures");
        match figures {
            Some(folder) => format!("{text}, and {number} into `{}`", display_path(folder)),
            None => text,
        }
    }
}
