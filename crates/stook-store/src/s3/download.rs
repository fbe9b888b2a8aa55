//! Downloads: ranges of one version of an object, a few at a time, in order.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::Bytes;
use object_store::aws::AmazonS3;
use object_store::path::Path;
use object_store::{GetOptions, ObjectStore};
use tokio::task::JoinHandle;

use crate::error::{Difference, StoreCause};
use crate::network::Meter;
use crate::s3::service::Call;
use crate::s3::{S3Store, again, quoted};
use crate::store::{FileVersion, StoredFile};

/// Bytes that are asked for at once.
const RANGE_BYTES: u64 = 8 << 20;

/// Ranges in flight.
const IN_FLIGHT: usize = 4;

/// Hands an object over in pieces, in order.
pub(super) async fn receive(
    store: &S3Store,
    file: &StoredFile,
    mut take: impl FnMut(&[u8]) -> Result<(), StoreCause>,
) -> Result<(), StoreCause> {
    let path = store.path_of(&file.name)?;
    let mut flying: VecDeque<Flying> = VecDeque::new();
    let mut asked = 0;
    loop {
        while flying.len() < IN_FLIGHT && asked < file.size {
            let end = file.size.min(asked + RANGE_BYTES);
            let (client, path, version) =
                (store.client.clone(), path.clone(), file.version.clone());
            let wanted = asked..end;
            let get = async move { range(&client, &path, version.as_ref(), wanted).await };
            flying.push_back(Flying(tokio::spawn(Meter::current().scope(get))));
            asked = end;
        }
        let Some(mut first) = flying.pop_front() else {
            return Ok(());
        };
        let bytes = (&mut first.0).await.map_err(std::io::Error::other)??;
        take(&bytes)?;
    }
}

/// A range on its way, which ends if nobody waits for it any more.
struct Flying(JoinHandle<Result<Bytes, StoreCause>>);

impl Drop for Flying {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns the bytes of a range, all of them.
pub(super) async fn range(
    client: &AmazonS3,
    path: &Path,
    version: Option<&FileVersion>,
    wanted: Range<u64>,
) -> Result<Bytes, StoreCause> {
    let get = || async {
        let options = GetOptions {
            range: Some(wanted.clone().into()),
            if_match: version.map(quoted),
            ..GetOptions::default()
        };
        let get = async { client.get_opts(path, options).await?.bytes().await };
        let bytes = Call::default()
            .ask(get)
            .await
            .map_err(|cause| match cause {
                StoreCause::Exists => StoreCause::Changed,
                cause => cause,
            })?;
        let (expected, found) = (wanted.end - wanted.start, bytes.len() as u64);
        if expected != found {
            return Err(StoreCause::Different(Difference::Size { expected, found }));
        }
        Ok(bytes)
    };
    again(get).await
}
