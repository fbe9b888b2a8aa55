//! What `export` wrote.

use serde::Serialize;
use stook_export::{ErofsReport, RefsReport};

use super::counts::{also, failed};
use crate::number::{count, size};

/// References.
#[derive(Serialize)]
pub(crate) struct Referred {
    members: u64,
    bytes: u64,
    volumes: u64,
    without_content: u64,
    failed: u64,
}

impl Referred {
    pub(crate) fn new(report: &RefsReport) -> Self {
        Self {
            members: report.members,
            bytes: report.bytes,
            volumes: report.volumes,
            without_content: report.without_content,
            failed: report.failed,
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "referred to {}, {}, in {}{}{}",
            count(self.members, "file", "files"),
            size(self.bytes),
            count(self.volumes, "volume", "volumes"),
            also(self.without_content, "without content"),
            failed(self.failed)
        )
    }
}

/// An image.
#[derive(Serialize)]
pub(crate) struct Imaged {
    inodes: u64,
    bytes: u64,
    volumes: Vec<String>,
    run: Option<i64>,
    last_id: i64,
    failed: u64,
}

impl Imaged {
    pub(crate) fn new(report: &ErofsReport) -> Self {
        Self {
            inodes: report.inodes,
            bytes: report.bytes,
            volumes: report.volumes.iter().map(ToString::to_string).collect(),
            run: report.state.run,
            last_id: report.state.last_id,
            failed: report.failed,
        }
    }

    pub(crate) fn text(&self) -> String {
        format!(
            "wrote an image of {}, {}, over {}{}",
            count(self.inodes, "inode", "inodes"),
            size(self.bytes),
            count(self.volumes.len() as u64, "volume", "volumes"),
            failed(self.failed)
        )
    }
}
