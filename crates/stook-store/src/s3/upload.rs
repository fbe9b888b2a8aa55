//! Uploads: one request for a small file, parts for a large one.
//!
//! ```text
//!   calling thread   read a part ──MD5──> hand it over        a few parts in flight, ~64 MiB
//!   tasks                                    sign, send; once more if the connection fails
//!   at the end       size and MD5 as promised? ──> complete, under the condition     else: abort
//! ```
//! Each request is signed with the SHA-256 of its bytes, which the server compares. The entity tag that it answers with is
//! made of the MD5s of the parts; ours must be the same.

use std::fs::File;
use std::time::Duration;

use bytes::Bytes;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion};
use reqwest::header::{HeaderName, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use stook_md5::{Feed, Md5, update_many};
use stook_sys::{Context, open_file, read_up_to_at};
use tokio::task::JoinSet;

use crate::error::StoreCause;
use crate::local_file::Digest;
use crate::network::Meter;
use crate::s3::service::Call;
use crate::s3::{S3Store, again, quoted};
use crate::store::{Condition, Upload};
use crate::transfer::TransferObserver;

/// The smallest part, and the largest file that is sent at once. S3 wants 5 MiB at least.
pub(super) const PART_BYTES: u64 = 8 << 20;

/// Parts that one object may have.
const MOST_PARTS: u64 = 10_000;

/// Memory for parts in flight, unless a single one needs more.
const MEMORY_BYTES: u64 = 64 << 20;

/// Parts in flight, at most.
const MOST_IN_FLIGHT: u64 = 4;

/// Bytes that are handed to the connection at once: how finely it is seen that something moves.
const SLICE_BYTES: usize = 128 << 10;

/// How long it may take to give up the parts of a failed upload.
const ABORT_TIME: Duration = Duration::from_millis(700);

/// Returns the length of the parts of a file.
fn part_bytes(size: u64) -> u64 {
    let least = size.div_ceil(MOST_PARTS).next_multiple_of(1 << 20);
    least.max(PART_BYTES)
}

/// What was sent, and the entity tag that a store gives it which makes them of MD5s.
pub(super) struct Sent {
    pub(super) digest: Digest,
    pub(super) tag: String,
}

/// Sends a file and makes it visible; returns what was sent and its tag at the store.
pub(super) fn send(
    store: &S3Store,
    upload: &Upload<'_>,
    observer: &dyn TransferObserver,
) -> Result<(Sent, Option<String>), StoreCause> {
    let path = store.path_of(upload.name)?;
    let meter = Meter::default();
    if upload.size <= PART_BYTES {
        let send = send_at_once(store, &path, upload, observer);
        return store.network.run(observer, &meter, send);
    }
    let begin = async {
        store.require_condition(upload).await?;
        again(|| Call::default().ask(store.client.create_multipart(&path))).await
    };
    let id = store.network.run(observer, &meter, begin)?;
    let sent = store.network.run(observer, &meter, async {
        let (sent, parts) = send_parts(store, &path, &id, upload, observer).await?;
        let call = Call::with_condition(condition_header(upload.condition)?);
        let completed = call.ask(store.client.complete_multipart(&path, &id, parts));
        Ok((sent, completed.await?.e_tag))
    });
    sent.inspect_err(|_| {
        let abort = again(|| Call::default().ask(store.client.abort_multipart(&path, &id)));
        store
            .network
            .run_briefly(ABORT_TIME, &Meter::default(), abort);
    })
}

async fn send_at_once(
    store: &S3Store,
    path: &Path,
    upload: &Upload<'_>,
    observer: &dyn TransferObserver,
) -> Result<(Sent, Option<String>), StoreCause> {
    let file = open_file(upload.path)?;
    // One byte more, so that a file that is longer than promised shows.
    let bytes = read_part(&file, upload, 0, upload.size + 1)?;
    let digest = Digest::of(&bytes);
    let tag = hexadecimal(digest.md5);
    let sent = Sent { digest, tag };
    sent.digest.require(upload.size, upload.md5)?;
    let payload = payload(bytes);
    let put = |mode: PutMode| {
        let options = PutOptions::from(mode);
        Call::default().ask(store.client.put_opts(path, payload.clone(), options))
    };
    let result = match upload.condition {
        Condition::Always => again(|| put(PutMode::Overwrite)).await,
        Condition::New => put(PutMode::Create).await,
        Condition::Unchanged(version) => {
            put(PutMode::Update(UpdateVersion {
                e_tag: Some(quoted(version)),
                version: None,
            }))
            .await
        }
    };
    observer.transferred(upload.size);
    Ok((sent, result?.e_tag))
}

async fn send_parts(
    store: &S3Store,
    path: &Path,
    id: &str,
    upload: &Upload<'_>,
    observer: &dyn TransferObserver,
) -> Result<(Sent, Vec<PartId>), StoreCause> {
    let file = open_file(upload.path)?;
    let part_bytes = part_bytes(upload.size);
    let most = (MEMORY_BYTES / part_bytes).clamp(1, MOST_IN_FLIGHT);
    let mut flying = Flying::default();
    let (mut size, mut whole, mut tags) = (0, Md5::new(), Md5::new());
    loop {
        let bytes = read_part(&file, upload, size, part_bytes)?;
        if bytes.is_empty() {
            break;
        }
        size += bytes.len() as u64;
        if size > upload.size {
            // It grows; that it has another size is found below.
            break;
        }
        let mut part = Md5::new();
        let bytes_of = |md5| Feed { md5, bytes: &bytes };
        update_many(&mut [bytes_of(&mut whole), bytes_of(&mut part)]);
        tags.update(&part.finish());
        while flying.tasks.len() as u64 >= most {
            flying.land(observer).await?;
        }
        flying.send(store, path, id, bytes);
    }
    while !flying.tasks.is_empty() {
        flying.land(observer).await?;
    }
    let md5 = whole.finish();
    let digest = Digest { size, md5 };
    digest.require(upload.size, upload.md5)?;
    let tag = format!("{}-{}", hexadecimal(tags.finish()), flying.parts.len());
    let parts = flying.parts.into_iter().flatten().collect();
    Ok((Sent { digest, tag }, parts))
}

/// Parts on their way; those that are not done end with it.
#[derive(Default)]
struct Flying {
    tasks: JoinSet<Result<(usize, u64, PartId), StoreCause>>,
    parts: Vec<Option<PartId>>,
}

impl Flying {
    fn send(&mut self, store: &S3Store, path: &Path, id: &str, bytes: Bytes) {
        let place = self.parts.len();
        self.parts.push(None);
        let (client, path, id) = (store.client.clone(), path.clone(), id.to_owned());
        let len = bytes.len() as u64;
        let meter = Meter::current();
        self.tasks.spawn(meter.scope(async move {
            let payload = payload(bytes);
            let put = || Call::default().ask(client.put_part(&path, &id, place, payload.clone()));
            Ok((place, len, again(put).await?))
        }));
    }

    /// Waits until one has arrived.
    async fn land(&mut self, observer: &dyn TransferObserver) -> Result<(), StoreCause> {
        if let Some(landed) = self.tasks.join_next().await {
            let (place, len, part) = landed.map_err(std::io::Error::other)??;
            self.parts[place] = Some(part);
            observer.transferred(len);
        }
        Ok(())
    }
}

fn read_part(file: &File, upload: &Upload<'_>, offset: u64, len: u64) -> Result<Bytes, StoreCause> {
    let len = len.min(upload.size.saturating_sub(offset) + 1);
    let len = usize::try_from(len).map_err(std::io::Error::other)?;
    let mut buffer = vec![0; len];
    let read = read_up_to_at(file, &mut buffer, offset).context("read", upload.path)?;
    buffer.truncate(read);
    Ok(buffer.into())
}

fn payload(mut bytes: Bytes) -> PutPayload {
    let mut slices = Vec::with_capacity(bytes.len() / SLICE_BYTES + 1);
    while bytes.len() > SLICE_BYTES {
        slices.push(bytes.split_to(SLICE_BYTES));
    }
    slices.push(bytes);
    PutPayload::from_iter(slices)
}

fn condition_header(
    condition: &Condition,
) -> Result<Option<(HeaderName, HeaderValue)>, StoreCause> {
    match condition {
        Condition::Always => Ok(None),
        Condition::New => Ok(Some((IF_NONE_MATCH, HeaderValue::from_static("*")))),
        Condition::Unchanged(version) => {
            // What is no value of a header was never the tag of an object.
            let value = HeaderValue::from_str(&quoted(version));
            let value = value.map_err(|_bytes| StoreCause::Exists)?;
            Ok(Some((IF_MATCH, value)))
        }
    }
}

fn hexadecimal(md5: [u8; 16]) -> String {
    md5.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_few_enough() {
        assert_eq!(part_bytes(PART_BYTES + 1), PART_BYTES);
        let largest = 256 << 30;
        assert_eq!(part_bytes(largest), 27 << 20);
        for size in [1 << 30, largest, 5 << 40] {
            assert!(size.div_ceil(part_bytes(size)) <= MOST_PARTS);
        }
    }
}
