//! Many files of HPSS, got in one session.
//!
//! ```text
//!   FOLDER/.stook-....partial/commands   ls of each file; get -A with a list of them all
//!                             files/     where they arrive, under their own names
//!   FOLDER/NAME                          one by one, once its size is right
//! ```
//! `get -A` lets hsi order the list by tape and position, so that each tape is mounted once. A list may hold
//! paths only, so files arrive under the names they have in HPSS, in a folder of their own.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stook_sys::{
    Context, Directory, TemporaryNames, create_directory, exists, install, look_at, open_file,
    remove_file, write_file,
};

use super::HsiStore;
use super::words::Answer;
use crate::error::{Difference, StoreCause, StoreError};
use crate::local_file::require_name;
use crate::store::Download;
use crate::transfer::TransferObserver;

/// What ends the list; no path is this word.
const MARKER: &str = "STOOK_END_OF_LIST";

/// Where files arrive, and what goes with it when it is dropped.
struct Arrival {
    folder: PathBuf,
    names: Vec<String>,
}

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
        while let Some(&first) = left.first() {
            let folder = folder_of(downloads[first].path);
            let mut names = HashSet::new();
            let (group, others) = left.into_iter().partition(|&place| {
                let download = &downloads[place];
                folder_of(download.path) == folder && names.insert(download.name)
            });
            left = others;
            let got = self.get_group(downloads, &group, folder, observer, arrived);
            got.map_err(self.failed("get", downloads[first].name))?;
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
        write_file(&arrival.folder.join("commands"), commands.as_bytes())?;
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
        let path = arrival.file(download.name);
        let found = exists(&path)?.map(|metadata| metadata.size);
        let listed = answer.and_then(|answer| answer.file(download.name));
        let expected = download.size.or(listed.as_ref().map(|file| file.size));
        if let (Some(expected), Some(found)) = (expected, found)
            && expected == found
        {
            open_file(&path)?.sync_all().context("sync", &path)?;
            return Ok(install(&path, download.path)?);
        }
        let program = self.program();
        let said = answer.and_then(|answer| answer.cause(&program, download.name));
        match (said, expected, found) {
            (Some(cause), ..) => Err(cause),
            (None, Some(expected), Some(found)) => {
                Err(StoreCause::Different(Difference::Size { expected, found }))
            }
            _ if answer.is_some() && listed.is_none() => Err(StoreCause::NotFound),
            _ => Err(answer.map_or(StoreCause::Interrupted, |answer| answer.unknown(&program))),
        }
    }
}

impl Arrival {
    fn create(folder: &Path, names: Vec<String>) -> Result<Self, StoreCause> {
        let inode = look_at(folder)?.identity().1;
        let name = TemporaryNames::new("partial").next(inode);
        let folder = folder.join(OsStr::from_bytes(&name));
        create_directory(&folder.join("files"))?;
        Ok(Self { folder, names })
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join("files").join(name)
    }

    /// Returns how many bytes have arrived.
    fn bytes(&self) -> u64 {
        let size = |name: &String| match exists(&self.file(name)) {
            Ok(Some(metadata)) => metadata.size,
            _ => 0,
        };
        self.names.iter().map(size).sum()
    }
}

impl Drop for Arrival {
    /// Removes what is left. What cannot be removed stays, under a name that tells whose it is.
    fn drop(&mut self) {
        for name in &self.names {
            let _ = remove_file(&self.file(name));
        }
        let _ = remove_file(&self.folder.join("commands"));
        if let Ok(folder) = Directory::open(&self.folder) {
            let _ = folder.remove_directory(b"files");
        }
        if let (Ok(above), Some(name)) = (
            Directory::open(folder_of(&self.folder)),
            self.folder.file_name(),
        ) {
            let _ = above.remove_directory(name.as_bytes());
        }
    }
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
