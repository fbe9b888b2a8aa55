//! `verify`: reads chosen members, and nothing else, and compares their contents with the index.

use std::sync::Arc;

use stook_index::{Row, Selection};
use stook_pool::Jobs;
use stook_timers::scope;
use stook_volume::Member;

use crate::ArchiveError;
use crate::archive::{Archive, Parts};
use crate::cause::Cause;
use crate::extract::{is_hard_link, read_member};
use crate::observer::{CountingObserver, Failure, MemberDone, MemberEnd, Observer, sys_failure};
use crate::read::{ContentMd5, LoadedRange, RowBatch, Volumes, for_each_batch};

/// Verifies chosen members: that each lies where the index says, and has its MD5. Returns how many failed.
///
/// What lies between members, and what the index says of others, is not looked at: that is up to [`check`](crate::check).
///
/// # Errors
/// `Index` if the archive cannot be read, `Interrupted`. A member that is damaged is no error: the observer is shown it.
pub fn verify_selected(
    archive: &mut Archive,
    selection: &Selection,
    jobs: Jobs,
    observer: &dyn Observer,
) -> Result<u64, ArchiveError> {
    let _scope = scope!("verify");
    let observer = CountingObserver::new(observer);
    let Parts { index, store, .. } = archive.parts(&observer)?;
    observer.phase("verify", Some(selection.len()), Some(selection.bytes()));
    let volumes = Volumes::new(Arc::clone(store));
    let work = |batch: RowBatch| verify_batch(&batch, &volumes, &observer);
    for_each_batch(
        ("verify", jobs),
        index,
        selection,
        &volumes,
        &observer,
        work,
    )?;
    index.require_unchanged()?;
    Ok(observer.failures())
}

fn verify_batch(batch: &RowBatch, volumes: &Volumes, observer: &CountingObserver<'_>) {
    let fail_all = |failure: &dyn Fn(&Row) -> Failure| {
        if observer.is_interrupted() {
            // The interruption is why.
            return;
        }
        for row in &batch.rows {
            tell(row, false, Err(failure(row)), observer);
        }
    };
    let volume = match volumes.get(batch.volume) {
        Ok(volume) => volume,
        Err(error) => return fail_all(&|row| sys_failure(&row.name, &error)),
    };
    let loaded = match LoadedRange::of(batch, &*volume, &volumes.buffers) {
        Ok(loaded) => loaded,
        Err(error) => return fail_all(&|row| Failure::io("read", &row.name, &error)),
    };
    let members = batch.rows.iter().map(|row| read_member(row, &loaded));
    let members: Vec<Result<Member, Failure>> = members.collect();
    let md5s = loaded.md5s(members.iter().map(|member| member.as_ref().ok()));
    for ((row, member), md5) in batch.rows.iter().zip(members).zip(md5s) {
        let is_link = member.as_ref().is_ok_and(is_hard_link);
        let verified = member.and_then(|member| verify(row, &member, md5, &loaded, observer));
        if observer.is_interrupted() {
            return;
        }
        tell(row, is_link, verified, observer);
        observer.advanced(1, row.size);
        stook_pool::advance(1);
    }
}

fn verify(
    row: &Row,
    member: &Member,
    md5: Option<[u8; 16]>,
    loaded: &LoadedRange<'_>,
    observer: &CountingObserver<'_>,
) -> Result<(), Failure> {
    let Some(expected) = row.md5.filter(|_| member.header.kind.has_content()) else {
        return Ok(());
    };
    let found = match md5 {
        Some(found) => found,
        None => {
            let mut md5 = ContentMd5::new(&row.name, member.header.size, observer);
            let hashed = loaded.content(member, |offset, bytes| {
                if observer.is_interrupted() {
                    return Err(Cause::Interrupted.into());
                }
                md5.update(offset, bytes).map_err(std::io::Error::from)
            });
            let hashed = hashed.and_then(|()| md5.finish().map_err(std::io::Error::from));
            hashed.map_err(|error| Failure::io("read", &row.name, &error))?
        }
    };
    if found == expected {
        Ok(())
    } else {
        Err(Failure::new("verify", &row.name, Cause::WrongMd5))
    }
}

fn tell(
    row: &Row,
    is_hard_link: bool,
    verified: Result<(), Failure>,
    observer: &CountingObserver<'_>,
) {
    let failure = verified.err();
    if let Some(failure) = &failure {
        observer.failed(failure);
    }
    observer.member(&MemberDone {
        row,
        is_hard_link,
        end: failure
            .as_ref()
            .map_or(MemberEnd::Verified, MemberEnd::Failed),
    });
}
