//! Files put to HPSS, and what proves that they are there.

use std::path::Path;

use stook_sys::look_at;

use super::words::{Answer, quoted_local};
use super::{HsiStore, PARTIAL, PREVIOUS};
use crate::error::{Difference, StoreCause};
use crate::local_file::{read_pieces, require_name};
use crate::store::{Condition, Proof, Stored, Upload};
use crate::transfer::{Silent, TransferObserver};

impl HsiStore {
    pub(super) fn put_file(
        &self,
        upload: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreCause> {
        require_name(upload.name)?;
        let path = self.remote(upload.name)?;
        self.require(upload)?;
        let md5 = local_md5(upload, observer)?;
        let partial_name = format!(".{}{PARTIAL}", upload.name);
        let partial = self.remote(&partial_name)?;
        let sent = self.send(upload, md5, &partial_name, &partial, observer);
        sent.inspect_err(|cause| {
            if leaves_time(cause) {
                // The error to report is the one of sending.
                let _ = self.ask(&format!("rm {partial}"));
            }
        })?;
        let proof = self.rename_over(upload, md5, &partial, &path, observer)?;
        observer.transferred(upload.size);
        let proof = match upload.proof {
            // It was read back under its other name.
            Proof::ReadBack if proof == Proof::HashedInTransfer => Proof::ReadBack,
            _ => proof,
        };
        let version = None;
        Ok(Stored { proof, version })
    }

    /// Gives a file its name and looks at it there. Where HPSS does not replace files by a rename, what has the name
    /// steps aside.
    fn rename_over(
        &self,
        upload: &Upload<'_>,
        md5: [u8; 16],
        partial: &str,
        path: &str,
        observer: &dyn TransferObserver,
    ) -> Result<Proof, StoreCause> {
        let look = format!("ls -lN {path}; hashlist {path}");
        let requests = format!("mv -f {partial} {path}; ls -lN {partial}; {look}");
        let moved = self.session(&requests, None, observer, &mut || false)?;
        let program = self.program();
        let is_left = moved.file(&format!(".{}{PARTIAL}", upload.name)).is_some();
        if !is_left || moved.file(upload.name).is_none() {
            return moved.proof(&program, upload.name, upload.size, Some(md5));
        }
        let previous_name = format!(".{}{PREVIOUS}", upload.name);
        let previous = self.remote(&previous_name)?;
        // Not to be interrupted: for a moment nothing has the name.
        let requests = format!("mv {path} {previous}; mv {partial} {path}; {look}");
        let moved = self.session(&requests, None, &Silent, &mut || false)?;
        let proof = moved.proof(&program, upload.name, upload.size, Some(md5));
        let after = match proof {
            Ok(_) => format!("rm {previous}"),
            Err(_) => format!("mv {previous} {path}"),
        };
        // What it could not do, `prepare` does.
        let _ = self.ask(&after);
        proof
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

    /// Puts a file under its partial name, unless it is there, and verifies it.
    fn send(
        &self,
        upload: &Upload<'_>,
        md5: [u8; 16],
        name: &str,
        partial: &str,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        let local = quoted_local(upload.path)?;
        let look = format!("ls -lN {partial}; hashlist {partial}");
        let program = self.program();
        let is_whole = |answer: &Answer| answer.proof(&program, name, upload.size, Some(md5));
        // A run that was killed may have sent it.
        let earlier = self.session(&look, None, observer, &mut || false)?;
        if !matches!(is_whole(&earlier), Ok(Proof::HashedInTransfer)) {
            let class = match self.options.class_of_service {
                Some(class) => format!("cos={class} "),
                None => String::new(),
            };
            // A put that is interrupted must not leave the hash of what was there before.
            let remove = match earlier.file(name) {
                Some(_) => format!("rm {partial}; "),
                None => String::new(),
            };
            let put = format!("put -c on -H md5 {class}{local} : {partial}");
            let requests = format!("{remove}{put}; {look}");
            let directory = upload.path.parent().filter(|path| *path != Path::new(""));
            is_whole(&self.session(&requests, directory, observer, &mut || false)?)?;
        }
        match upload.proof {
            Proof::ReadBack => self.read_back(name, partial, observer),
            _ => Ok(()),
        }
    }

    /// Has HPSS read a file from where it lies and compare it with its stored hash.
    fn read_back(
        &self,
        name: &str,
        path: &str,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        let requests = format!("hashverify -A {path}");
        let answer = self.session(&requests, None, observer, &mut || false)?;
        match answer.cause(&self.program(), name) {
            _ if answer.is_verified(name) => Ok(()),
            Some(StoreCause::Said { text, .. }) if text.contains("mismatch") => {
                Err(StoreCause::Different(Difference::Hash))
            }
            cause => Err(cause.unwrap_or_else(|| answer.unknown(&self.program()))),
        }
    }

    pub(super) fn verify_file(
        &self,
        file: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Proof, StoreCause> {
        require_name(file.name)?;
        let (path, program) = (self.remote(file.name)?, self.program());
        let requests = format!("ls -lN {path}; hashlist {path}");
        let answer = self.session(&requests, None, observer, &mut || false)?;
        if file.proof < Proof::ReadBack {
            return answer.proof(&program, file.name, file.size, file.md5);
        }
        let md5 = local_md5(file, observer)?;
        if answer.proof(&program, file.name, file.size, Some(md5))? == Proof::HashedInTransfer {
            self.read_back(file.name, &path, observer)?;
            return Ok(Proof::ReadBack);
        }
        // Nobody stored a hash: it is computed from what lies there, and stored.
        let requests = format!("hashcreate -H md5 {path}; ls -lN {path}; hashlist {path}");
        let answer = self.session(&requests, None, observer, &mut || false)?;
        match answer.proof(&program, file.name, file.size, Some(md5))? {
            Proof::HashedInTransfer => Ok(Proof::ReadBack),
            proof => Ok(proof),
        }
    }
}

/// Returns the MD5 of a local file: the one that is known, or else it is read.
fn local_md5(file: &Upload<'_>, observer: &dyn TransferObserver) -> Result<[u8; 16], StoreCause> {
    match file.md5 {
        Some(md5) => Ok(md5),
        None => Ok(read_pieces(file.path, StoreCause::Sys, observer, |_| Ok(()))?.md5),
    }
}

/// Returns whether something can still be removed after a failure.
fn leaves_time(cause: &StoreCause) -> bool {
    !matches!(
        cause,
        StoreCause::Interrupted
            | StoreCause::Timeout(_)
            | StoreCause::Login { .. }
            | StoreCause::NoProgram(_)
            | StoreCause::Character(_)
    )
}
