//! What is where: volumes in stores.

use serde::Serialize;
use stook_archive::{PullReport, SentReport, StatusReport, VolumeStatus};

use super::counts::failed;
use crate::number::{count, size};

/// What was sent to a store.
#[derive(Serialize)]
pub(crate) struct Sent {
    volumes: u64,
    bytes: u64,
    missing: u64,
    seconds: f64,
}

impl Sent {
    pub(crate) fn new(report: &SentReport) -> Self {
        Self {
            volumes: report.volumes,
            bytes: report.bytes,
            missing: report.missing,
            seconds: report.elapsed.as_secs_f64(),
        }
    }

    pub(crate) fn text(&self) -> String {
        let volumes = count(self.volumes, "volume", "volumes");
        let missing = match self.missing {
            0 => String::new(),
            missing => format!(
                "; {} neither here nor there",
                count(missing, "volume", "volumes")
            ),
        };
        format!(
            "sent {volumes}, {}, and the index{missing}",
            size(self.bytes)
        )
    }
}

/// What was fetched from a store.
#[derive(Serialize)]
pub(crate) struct Pulled {
    index: bool,
    volumes: u64,
    bytes: u64,
    failed: u64,
}

impl Pulled {
    pub(crate) fn new(report: &PullReport) -> Self {
        Self {
            index: report.index,
            volumes: report.volumes,
            bytes: report.bytes,
            failed: report.failed,
        }
    }

    pub(crate) fn text(&self) -> String {
        let volumes = count(self.volumes, "volume", "volumes");
        let index = if self.index { "the index, " } else { "" };
        format!(
            "fetched {index}{volumes}, {}{}",
            size(self.bytes),
            failed(self.failed)
        )
    }
}

/// Where a volume is.
#[derive(Serialize)]
pub(crate) struct StoredVolume {
    volume: String,
    size: Option<u64>,
    local: Option<u64>,
    stored: Option<u64>,
    proof: Option<String>,
    proved: Option<String>,
    holds: bool,
    missing: bool,
    safe_to_delete: bool,
}

impl StoredVolume {
    pub(crate) fn new(status: &VolumeStatus, was_asked: bool) -> Self {
        let transfer = status.transfer.as_ref();
        Self {
            volume: status.volume.to_string(),
            size: status.size,
            local: status.local,
            stored: status.stored,
            proof: transfer.map(|transfer| transfer.proof.clone()),
            proved: transfer.map(|transfer| transfer.at.to_string()),
            holds: status.is_proved,
            missing: status.is_missing(was_asked),
            safe_to_delete: status.is_safe_to_delete,
        }
    }

    pub(crate) fn text(&self) -> String {
        let bytes = self.size.map_or("?".to_owned(), size);
        let local = match self.local {
            None => "not here",
            Some(local) if Some(local) == self.size => "here",
            Some(_) => "here, of another length",
        };
        let stored = match (&self.proof, &self.proved, self.stored) {
            (Some(proof), Some(proved), _) if self.holds => {
                format!("in the store: {proof}, {proved}")
            }
            (_, _, Some(stored)) if self.size.is_some_and(|size| size != stored) => {
                format!("in the store: {} of it", size(stored))
            }
            (Some(_), _, Some(_)) => "in the store: changed since it was sent".to_owned(),
            (None, _, Some(_)) => "in the store: not proved".to_owned(),
            (Some(_), _, None) => "not in the store any more".to_owned(),
            (None, _, None) => "not in the store".to_owned(),
        };
        let advice = match (self.missing, self.safe_to_delete) {
            (true, _) => "; missing",
            (_, true) => "; safe to delete here",
            _ => "",
        };
        format!("{}  {bytes}  {local}; {stored}{advice}", self.volume)
    }
}

/// The state of an archive and its store.
#[derive(Serialize)]
pub(crate) struct ArchiveStatus {
    store: Option<String>,
    asked: bool,
    volumes: u64,
    local: u64,
    proved: u64,
    missing: u64,
    safe_to_delete: u64,
    gaps: Vec<String>,
    unfinished: Vec<String>,
    index_current: Option<bool>,
}

impl ArchiveStatus {
    pub(crate) fn new(found: &StatusReport) -> Self {
        let number = |is: &dyn Fn(&VolumeStatus) -> bool| {
            found.volumes.iter().filter(|volume| is(volume)).count() as u64
        };
        let names = |ids: &[stook_archive::VolumeId]| ids.iter().map(ToString::to_string).collect();
        Self {
            store: found.place.clone(),
            asked: found.was_asked,
            volumes: found.volumes.len() as u64,
            local: number(&|volume| volume.local.is_some()),
            proved: number(&|volume| volume.is_proved),
            missing: number(&|volume| volume.is_missing(found.was_asked)),
            safe_to_delete: number(&|volume| volume.is_safe_to_delete),
            gaps: names(&found.gaps),
            unfinished: names(&found.unfinished),
            index_current: found.is_index_current,
        }
    }

    pub(crate) fn text(&self) -> String {
        let store = match &self.store {
            None => "no store".to_owned(),
            Some(store) => format!("store {store}"),
        };
        let mut text = format!(
            "{store}: {}, {} here, {} proved to be there",
            count(self.volumes, "volume", "volumes"),
            self.local,
            self.proved
        );
        let lists = [
            ("missing numbers", &self.gaps),
            ("unfinished", &self.unfinished),
        ];
        for (what, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
            text += &format!("; {what}: {}", names.join(" "));
        }
        if self.missing > 0 {
            text += &format!("; {} missing", self.missing);
        }
        match self.index_current {
            Some(false) => text += "; the index there is of an earlier run",
            None if self.store.is_some() => text += "; the index was never sent",
            _ => {}
        }
        text
    }
}
