//! Many files of an endpoint, got by one task.
//!
//! What is missing is known from a listing before: a task that looks for a file that is not there waits for it for a day.

use std::collections::HashMap;
use std::path::Path;

use super::answer::word;
use super::task::Transfer;
use super::{GlobusStore, local_path};
use crate::arrival::{Arrival, groups};
use crate::error::{Difference, StoreCause, StoreError};
use crate::local_file::{read_pieces, require_name};
use crate::store::{Download, Upload};
use crate::transfer::TransferObserver;

impl GlobusStore {
    pub(super) fn get_all(
        &self,
        downloads: &[Download<'_>],
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreError> {
        let files = self.listing(observer).map_err(self.failed("list", ""))?;
        let files = files.unwrap_or_default().into_iter();
        let sizes: HashMap<String, u64> = files.map(|file| (file.name, file.size)).collect();
        let mut left = Vec::new();
        for (place, download) in downloads.iter().enumerate() {
            match self.is_wanted(download, &sizes) {
                Ok(()) => left.push(place),
                Err(cause) => arrived(place, Err(self.failed("get", download.name)(cause))),
            }
        }
        for (folder, group) in groups(downloads, left) {
            let got = self.get_group(downloads, &group, folder, &sizes, observer, arrived);
            got.map_err(self.failed("get", downloads[group[0]].name))?;
        }
        Ok(())
    }

    /// Requires what can be known of a file before it moves.
    fn is_wanted(
        &self,
        download: &Download<'_>,
        sizes: &HashMap<String, u64>,
    ) -> Result<(), StoreCause> {
        require_name(download.name)?;
        self.remote(download.name)?;
        let found = *sizes.get(download.name).ok_or(StoreCause::NotFound)?;
        match download.size {
            Some(expected) if expected != found => {
                Err(StoreCause::Different(Difference::Size { expected, found }))
            }
            _ => Ok(()),
        }
    }

    fn get_group(
        &self,
        downloads: &[Download<'_>],
        group: &[usize],
        folder: &Path,
        sizes: &HashMap<String, u64>,
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreCause> {
        let names = group.iter().map(|&place| downloads[place].name.to_owned());
        let arrival = Arrival::create(folder, names.collect())?;
        let ended = self.bring(&arrival, observer);
        for &place in group {
            let download = &downloads[place];
            let settled = arrival.settle(download, sizes.get(download.name).copied());
            let got = match settled {
                Ok(None) => Ok(()),
                // It did not come because of what ended the task.
                Ok(Some(_)) | Err(_) if ended.is_err() => continue,
                Ok(Some(cause)) | Err(cause) => Err(cause),
            };
            arrived(place, got.map_err(self.failed("get", download.name)));
        }
        ended
    }

    /// Has one task bring all files. Interrupted, it is cancelled: nobody would be there for them.
    fn bring(&self, arrival: &Arrival, observer: &dyn TransferObserver) -> Result<(), StoreCause> {
        let mut batch = String::new();
        for name in &arrival.names {
            let local = local_path(&arrival.file(name))?;
            batch.push_str(&format!(
                "{} {}\n",
                word(&self.remote(name)?)?,
                word(&local)?
            ));
        }
        let transfer = Transfer {
            source: self.endpoint.as_str(),
            destination: self.options.local.as_str(),
            batch,
            label: "stook get",
        };
        let id = self.submit(&transfer, observer)?;
        self.wait(&id, observer).inspect_err(|_| self.cancel(&id))
    }

    /// Gets a file into the scratch folder and compares its MD5.
    pub(super) fn read_back(
        &self,
        file: &Upload<'_>,
        md5: [u8; 16],
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        let arrival = Arrival::create(&self.options.scratch, vec![file.name.to_owned()])?;
        self.bring(&arrival, observer)?;
        let path = arrival.file(file.name);
        read_pieces(&path, StoreCause::Sys, observer, |_| Ok(()))?.require(file.size, Some(md5))
    }
}
