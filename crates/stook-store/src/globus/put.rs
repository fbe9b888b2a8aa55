//! Files put to an endpoint, and what proves that they are there.

use stook_sys::{Stamp, look_at, open_file};

use super::answer::word;
use super::task::{Earlier, Transfer, label_of};
use super::{GlobusStore, PARTIAL, PREVIOUS, local_path};
use crate::error::{Difference, StoreCause};
use crate::local_file::{read_pieces, require_name};
use crate::store::{Condition, Proof, Stored, Upload};
use crate::transfer::TransferObserver;

impl GlobusStore {
    pub(super) fn put_file(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreCause> {
        require_name(upload.name)?;
        let path = self.remote(upload.name)?;
        self.require(upload)?;
        let label = self.label(upload, &path)?;
        let digits = &label[label.len() - 16..];
        let (partial_name, partial) = self.beside(upload.name, &format!(".{digits}{PARTIAL}"))?;
        let is_there = || self.require_size(&partial_name, upload.size, observer);
        let sent = match self.earlier(&label, observer)? {
            Earlier::Succeeded if is_there().is_ok() => Ok(()),
            Earlier::Active(id) => self.wait(&id, observer),
            _ => self.send(upload, &partial, &label, observer),
        };
        sent.and_then(|()| is_there()).inspect_err(|cause| {
            if is_refused(cause) {
                // The error to report is the one of sending.
                let _ = self.remove(&partial);
            }
        })?;
        self.rename_over(upload.name, &partial, &path, observer)?;
        self.require_size(upload.name, upload.size, observer)?;
        Ok(Stored {
            proof: Proof::HashedInTransfer,
            version: None,
        })
    }

    /// Returns the label of the task that puts a file, as it is now. Its partial name has a part of it, so that nothing
    /// else arrives under that.
    fn label(&self, upload: &Upload<'_>, path: &str) -> Result<String, StoreCause> {
        let (local, remote) = (self.options.local.as_str(), self.endpoint.as_str());
        let stamp = Stamp::of(&open_file(upload.path)?)?.text();
        let md5 = format!("{:?}", upload.md5);
        Ok(label_of(&[local, remote, path, &stamp, &md5]))
    }

    /// Returns the name and the path of a file that stands for another for a while.
    fn beside(&self, name: &str, suffix: &str) -> Result<(String, String), StoreCause> {
        let name = format!(".{name}{suffix}");
        let path = self.remote(&name)?;
        Ok((name, path))
    }

    /// Requires what must be so before anything is sent.
    fn require(&self, upload: &Upload<'_>) -> Result<(), StoreCause> {
        let found = look_at(upload.path)?.size;
        if found != upload.size {
            let expected = upload.size;
            return Err(StoreCause::Different(Difference::Size { expected, found }));
        }
        let is_met = match upload.condition {
            Condition::Always => true,
            Condition::New => self.stat_file(upload.name)?.is_none(),
            // Files of this store have no versions.
            Condition::Unchanged(_) => false,
        };
        is_met.then_some(()).ok_or(StoreCause::Exists)
    }

    /// Transfers a local file. The service compares what it reads here with the MD5, if there is one.
    fn send(
        &self,
        upload: &Upload<'_>,
        partial: &str,
        label: &str,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        let local = local_path(upload.path)?;
        let checksum = match upload.md5 {
            Some(md5) => {
                let digits = md5.map(|byte| format!("{byte:02x}"));
                format!("--external-checksum {} ", digits.concat())
            }
            None => String::new(),
        };
        let transfer = Transfer {
            source: self.options.local.as_str(),
            destination: self.endpoint.as_str(),
            batch: format!("{checksum}{} {}\n", word(&local)?, word(partial)?),
            label,
        };
        self.transfer(&transfer, observer)
    }

    fn require_size(
        &self,
        name: &str,
        expected: u64,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        let files = self.listing(observer)?.unwrap_or_default();
        let file = files.iter().find(|file| file.name == name);
        match file.ok_or(StoreCause::NotFound)?.size {
            found if found == expected => Ok(()),
            found => Err(StoreCause::Different(Difference::Size { expected, found })),
        }
    }

    /// Gives a file its name. What has it steps aside, and comes back if that fails.
    fn rename_over(
        &self,
        name: &str,
        partial: &str,
        path: &str,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        let (previous_name, previous) = self.beside(name, PREVIOUS)?;
        let files = self.listing(observer)?.unwrap_or_default();
        let has = |name: &str| files.iter().any(|file| file.name == name);
        let is_replaced = has(name);
        if is_replaced {
            if has(&previous_name) {
                self.remove(&previous)?;
            }
            self.rename(path, &previous)?;
        }
        self.rename(partial, path).inspect_err(|_| {
            if is_replaced {
                // The error to report is the first; `prepare` tries again.
                let _ = self.rename(&previous, path);
            }
        })?;
        if is_replaced || has(&previous_name) {
            self.remove(&previous)?;
        }
        Ok(())
    }

    /// Compares sizes; to read a file back it has to come here.
    pub(super) fn verify_file(
        &self,
        file: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Proof, StoreCause> {
        require_name(file.name)?;
        self.remote(file.name)?;
        self.require_size(file.name, file.size, observer)?;
        if file.proof < Proof::ReadBack {
            return Ok(Proof::Size);
        }
        let md5 = match file.md5 {
            Some(md5) => md5,
            None => read_pieces(file.path, StoreCause::Sys, observer, |_| Ok(()))?.md5,
        };
        self.read_back(file, md5, observer)?;
        Ok(Proof::ReadBack)
    }
}

/// Returns true if the service has ended what it did, so that the remains can go.
fn is_refused(cause: &StoreCause) -> bool {
    matches!(
        cause,
        StoreCause::Different(_) | StoreCause::Full | StoreCause::Said { .. } | StoreCause::Denied
    )
}
