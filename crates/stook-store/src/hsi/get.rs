//! Many files of HPSS, got in one session.
//!
//! ```text
//!   FOLDER/.stook-....partial/commands   ls of each file; get -A with a list of them all
//!                             files/     where they arrive, under their own names
//!   FOLDER/NAME                          one by one, once its size is right
//! ```
//! `get -A` lets hsi order the list by tape and position, so that each tape is mounted once. A list may hold
//! paths only, so files arrive under the names they have in HPSS, in a folder of their own.

use std::path::Path;

use stook_sys::write_file;

use super::HsiStore;
use super::words::Answer;
use crate::arrival::{Arrival, COMMANDS, groups};
use crate::error::{StoreCause, StoreError};
use crate::local_file::require_name;
use crate::store::Download;
use crate::transfer::TransferObserver;

/// What ends the list; no path is this word.
const MARKER: &str = "STOOK_END_OF_LIST";

impl HsiStore {
    pub(super) fn get_all(
        &self,
        downloads: &[Download<'_>],
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreError> {
        let mut left = Vec::new();
        for (place, download) in downloads.iter().enumerate() {
            let wanted = require_name(download.name).and_then(|()| self.remote(download.name));
            match wanted {
                Ok(_) => left.push(place),
                Err(cause) => arrived(place, Err(self.failed("get", download.name)(cause))),
            }
        }
        for (folder, group) in groups(downloads, left) {
            let got = self.get_group(downloads, &group, folder, observer, arrived);
            got.map_err(self.failed("get", downloads[group[0]].name))?;
        }
        Ok(())
    }

    /// Gets files of different names that go to one folder.
    fn get_group(
        &self,
        downloads: &[Download<'_>],
        group: &[usize],
        folder: &Path,
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreCause> {
        let names = group.iter().map(|&place| downloads[place].name.to_owned());
        let arrival = Arrival::create(folder, names.collect())?;
        let commands = self.commands(&arrival.names)?;
        write_file(&arrival.folder.join(COMMANDS), commands.as_bytes())?;
        let mut seen = 0;
        let mut has_moved = || {
            let now = arrival.bytes();
            observer.transferred(now.saturating_sub(seen));
            std::mem::replace(&mut seen, now) != now
        };
        let answer = self.session(
            "in commands",
            Some(&arrival.folder),
            observer,
            &mut has_moved,
        );
        has_moved();
        for &place in group {
            let download = &downloads[place];
            let got = self.settle(&arrival, download, answer.as_ref().ok());
            match got {
                // It did not come because of what ended the session.
                Err(_) if answer.is_err() => {}
                got => arrived(place, got.map_err(self.failed("get", download.name))),
            }
        }
        answer.map(|_| ())
    }

    fn commands(&self, names: &[String]) -> Result<String, StoreCause> {
        let mut commands = String::new();
        let paths: Result<Vec<_>, _> = names.iter().map(|name| self.remote(name)).collect();
        let paths = paths?;
        for path in &paths {
            commands.push_str(&format!("ls -lN {path}\n"));
        }
        commands.push_str(&format!("lcd files\nget -A <<{MARKER}\n"));
        for path in &paths {
            commands.push_str(&format!("{path}\n"));
        }
        commands.push_str(&format!("{MARKER}\n"));
        Ok(commands)
    }

    /// Gives a file its name if it is whole: if it has the size that is wanted, or else the one that was listed.
    fn settle(
        &self,
        arrival: &Arrival,
        download: &Download<'_>,
        answer: Option<&Answer>,
    ) -> Result<(), StoreCause> {
        let listed = answer.and_then(|answer| answer.file(download.name));
        let size = download.size.or(listed.as_ref().map(|file| file.size));
        let Some(different) = arrival.settle(download, size)? else {
            return Ok(());
        };
        let program = self.program();
        let said = answer.and_then(|answer| answer.cause(&program, download.name));
        match (said, different) {
            (Some(cause), _) | (None, cause @ StoreCause::Different(_)) => Err(cause),
            _ if answer.is_some() && listed.is_none() => Err(StoreCause::NotFound),
            _ => Err(answer.map_or(StoreCause::Interrupted, |answer| answer.unknown(&program))),
        }
    }
}
