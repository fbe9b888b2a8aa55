//! A directory of a web server, for reading.
//!
//! ```text
//!   stat    HEAD                          size; version: the entity tag, or when it was modified
//!   get     GET                           as many bytes as the server promised
//!   range   GET, Range, If-Match,         206: exactly these bytes of this version
//!           If-Range
//! ```
//! A version is asked for twice: a server that heeds `If-Match` answers 412 where the file is another one, without a body; one
//! that heeds only `If-Range`, as many caches do, answers 200 with another version. One that heeds neither is found out by the
//! version of its answer, without which no answer is taken (RFC 9110, 13.2.2 and 15.3.7). A file without an entity tag is asked for by its
//! time with `If-Unmodified-Since`; `If-Range` would refuse a file of the last minute (13.1.5).
//! A server that ignores ranges answers with the whole file: of a small one the part is taken, else there are none.
//! Redirects are followed on the same server only. Listings of directories are not read: they are pages for people.

mod answer;
mod range;
mod redirect;

use std::ops::Range;

use reqwest::header::{
    CONTENT_ENCODING, HeaderMap, HeaderValue, IF_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE,
};
use reqwest::{Method, Response, StatusCode, Url};

use stook_md5::Md5;

use crate::error::{Difference, StoreCause, StoreError};
use crate::local_file::{NewFile, expected_md5, require_name};
use crate::network::{Meter, Network, connection_cause};
use crate::settings::Settings;
use crate::store::{Abilities, Download, Proof, Store, Stored, StoredFile, Upload};
use crate::transfer::{Silent, TransferObserver, get_each};

/// Redirects that are followed for one request.
const MOST_REDIRECTS: usize = 5;

/// Files up to this size are read as a whole where the server has no ranges.
const SMALL_BYTES: u64 = 4 << 20;

/// A directory of a web server.
#[derive(Debug)]
pub struct HttpStore {
    name: String,
    url: Url,
    network: Network,
}

impl HttpStore {
    /// Returns the store at a URL; nothing is asked of the server.
    ///
    /// # Errors
    /// `Url` if it is none; `Io` if no connection could be made whatever it is.
    pub fn new(url: &str, settings: &Settings) -> Result<Self, StoreError> {
        let failed = |cause| StoreError::new("open", "", url, cause);
        let parsed = Url::parse(url).ok().filter(Url::has_host);
        let parsed = parsed.ok_or_else(|| failed(StoreCause::Url))?;
        Ok(Self {
            name: public_name(&parsed),
            url: parsed,
            network: Network::new(settings).map_err(failed)?,
        })
    }

    fn failed(&self, operation: &'static str, file: &str) -> impl Fn(StoreCause) -> StoreError {
        let (file, store) = (file.to_owned(), self.name.clone());
        move |cause| StoreError::new(operation, &file, &store, cause)
    }

    fn url_of(&self, name: &str) -> Result<Url, StoreCause> {
        require_name(name)?;
        let mut url = self.url.clone();
        url.path_segments_mut()
            .map_err(|()| StoreCause::Url)?
            .pop_if_empty()
            .push(name);
        Ok(url)
    }

    /// Sends a request, to where the same server redirects it.
    async fn send(
        &self,
        method: Method,
        name: &str,
        headers: HeaderMap,
    ) -> Result<Response, StoreCause> {
        let mut url = self.url_of(name)?;
        for _ in 0..=MOST_REDIRECTS {
            let request = self.network.client.request(method.clone(), url.clone());
            let sent = request.headers(headers.clone()).send().await;
            let response = sent.map_err(|error| connection_cause(&error))?;
            Meter::current().add(0);
            match redirect::target(&url, &response)? {
                Some(target) => url = target,
                None => return Ok(response),
            }
        }
        Err(answer::odd(&self.url, "it redirects again and again"))
    }

    async fn stat_file(&self, name: &str) -> Result<Option<StoredFile>, StoreCause> {
        let response = self.send(Method::HEAD, name, HeaderMap::new()).await?;
        match answer::require_success(&self.url, &response) {
            Err(StoreCause::NotFound) => return Ok(None),
            other => other?,
        }
        Ok(Some(StoredFile {
            name: name.to_owned(),
            size: answer::whole_size(&response).ok_or(StoreCause::NoSize)?,
            version: answer::version(&response),
        }))
    }

    /// Hands a whole file over in pieces, and sees that it is whole.
    async fn receive(
        &self,
        name: &str,
        size: Option<u64>,
        mut take: impl FnMut(&[u8]) -> Result<(), StoreCause>,
    ) -> Result<(), StoreCause> {
        let mut response = self.send(Method::GET, name, HeaderMap::new()).await?;
        answer::require_success(&self.url, &response)?;
        require_plain(&self.url, &response)?;
        let mut found = 0;
        while let Some(piece) = next_piece(&mut response).await? {
            found += piece.len() as u64;
            take(&piece)?;
        }
        let expected = size.or_else(|| answer::whole_size(&response));
        answer::require_size(
            found,
            expected.or_else(|| answer::end_is_known(&response, found)),
        )
    }

    fn get_file(
        &self,
        download: &Download<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<(), StoreCause> {
        require_name(download.name)?;
        NewFile::write_whole(download.path, |file| {
            let receive = self.receive(download.name, download.size, |piece| {
                observer.transferred(piece.len() as u64);
                Ok(file.append(piece)?)
            });
            self.network.run(observer, &Meter::default(), receive)
        })
    }

    fn verify_file(
        &self,
        file: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreCause> {
        let stat = self.stat_file(file.name);
        let found = self.network.run(observer, &Meter::default(), stat)?;
        let found = found.ok_or(StoreCause::NotFound)?;
        answer::require_size(found.size, Some(file.size))?;
        let mut proof = Proof::Size;
        if file.proof == Proof::ReadBack {
            let (expected, mut md5) = (expected_md5(file, observer)?, Md5::new());
            let receive = self.receive(file.name, Some(file.size), |piece| {
                md5.update(piece);
                Ok(())
            });
            self.network.run(observer, &Meter::default(), receive)?;
            if md5.finish() != expected {
                return Err(StoreCause::Different(Difference::Hash));
            }
            proof = Proof::ReadBack;
        }
        let version = found.version;
        Ok(Stored { proof, version })
    }

    /// Hands a range over in pieces; it ends with the file at the latest.
    async fn read(
        &self,
        file: &StoredFile,
        range: Range<u64>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), StoreCause> {
        let (offset, last) = (range.start, range.end - 1);
        let mut headers = HeaderMap::new();
        headers.insert(RANGE, header(&format!("bytes={offset}-{last}"))?);
        if let Some(version) = &file.version {
            let value = header(&version.0)?;
            if version.0.starts_with('"') {
                headers.insert(IF_MATCH, value.clone());
                headers.insert(IF_RANGE, value);
            } else {
                headers.insert(IF_UNMODIFIED_SINCE, value);
            }
        }
        let response = self.send(Method::GET, &file.name, headers).await?;
        match response.status() {
            StatusCode::PRECONDITION_FAILED | StatusCode::RANGE_NOT_SATISFIABLE => {
                return Err(StoreCause::Changed);
            }
            _ => answer::require_success(&self.url, &response)?,
        }
        require_plain(&self.url, &response)?;
        let found = answer::version(&response);
        if file.version.is_some() && found.is_some() && found != file.version {
            return Err(StoreCause::Changed);
        }
        let skipped = if response.status() == StatusCode::PARTIAL_CONTENT {
            range::require(&self.url, &response, offset, last, file.size)?;
            0
        } else {
            require_small(&response, file.size)?;
            offset
        };
        if file.version.is_some() && found.is_none() {
            let text = "it does not say of which version the bytes are";
            return Err(answer::odd(&self.url, text));
        }
        hand_over(response, skipped, range.end - range.start, take).await
    }
}

/// Returns the URL as messages show it: without what may be secret.
fn public_name(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    // Only URLs without a host cannot have them.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.as_str().trim_end_matches('/').to_owned()
}

fn header(text: &str) -> Result<HeaderValue, StoreCause> {
    HeaderValue::from_str(text).map_err(|_bytes| StoreCause::Changed)
}

async fn next_piece(response: &mut Response) -> Result<Option<bytes::Bytes>, StoreCause> {
    let piece = response.chunk().await;
    let piece = piece.map_err(|error| connection_cause(&error))?;
    Meter::current().add(piece.as_ref().map_or(0, bytes::Bytes::len));
    Ok(piece)
}

/// Requires the bytes themselves, not compressed ones.
fn require_plain(url: &Url, response: &Response) -> Result<(), StoreCause> {
    match response.headers().get(CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => {
            Err(answer::odd(url, "it sends the file compressed"))
        }
        _ => Ok(()),
    }
}

/// Requires that the whole file may be read for the sake of a part.
fn require_small(response: &Response, size: u64) -> Result<(), StoreCause> {
    match response.content_length() {
        Some(len) if len != size => Err(StoreCause::Changed),
        _ if size > SMALL_BYTES => Err(StoreCause::NoRanges),
        _ => Ok(()),
    }
}

/// Hands over the bytes behind those that are skipped; what follows is not read.
async fn hand_over(
    mut response: Response,
    mut skipped: u64,
    expected: u64,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(), StoreCause> {
    let mut found = 0;
    while found < expected {
        let Some(piece) = next_piece(&mut response).await? else {
            return answer::require_size(found, Some(expected));
        };
        let skip = usize::try_from(skipped).map_or(piece.len(), |skip| skip.min(piece.len()));
        skipped -= skip as u64;
        let rest = &piece[skip..];
        let len = usize::try_from(expected - found).map_or(rest.len(), |left| left.min(rest.len()));
        take(&rest[..len]);
        found += len as u64;
    }
    Ok(())
}

impl Store for HttpStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            gives: Proof::Size,
            minimum: Proof::ReadBack,
            is_conditional: false,
            is_atomic: false,
            has_ranges: true,
            is_writable: false,
        }
    }

    fn prepare(&self) -> Result<(), StoreError> {
        Err(self.failed("write to", "")(StoreCause::ReadOnly))
    }

    fn put(
        &self,
        upload: &Upload<'_>,
        _observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        let refused = require_name(upload.name).err();
        Err(self.failed("put", upload.name)(
            refused.unwrap_or(StoreCause::ReadOnly),
        ))
    }

    fn verify(
        &self,
        file: &Upload<'_>,
        observer: &dyn TransferObserver,
    ) -> Result<Stored, StoreError> {
        let verified = self.verify_file(file, observer);
        verified.map_err(self.failed("verify", file.name))
    }

    fn get(
        &self,
        downloads: &[Download<'_>],
        observer: &dyn TransferObserver,
        arrived: &mut dyn FnMut(usize, Result<(), StoreError>),
    ) -> Result<(), StoreError> {
        get_each(downloads, arrived, |download| {
            let got = self.get_file(download, observer);
            got.map_err(self.failed("get", download.name))
        })
    }

    fn read_range(
        &self,
        file: &StoredFile,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<usize, StoreError> {
        if buffer.is_empty() || offset >= file.size {
            return Ok(0);
        }
        let end = file.size.min(offset.saturating_add(buffer.len() as u64));
        let mut filled = 0;
        self.read_pieces(file, offset..end, &mut |piece| {
            buffer[filled..filled + piece.len()].copy_from_slice(piece);
            filled += piece.len();
        })?;
        Ok(filled)
    }

    fn read_pieces(
        &self,
        file: &StoredFile,
        range: Range<u64>,
        take: &mut dyn FnMut(&[u8]),
    ) -> Result<(), StoreError> {
        let (expected, found) = (range.end, file.size);
        if range.is_empty() {
            return Ok(());
        }
        let failed = self.failed("read", &file.name);
        if expected > found {
            return Err(failed(Difference::Size { expected, found }.into()));
        }
        let read = self.read(file, range, take);
        let read = self.network.run(&Silent, &Meter::default(), read);
        read.map_err(failed)
    }

    fn list(&self) -> Result<Vec<StoredFile>, StoreError> {
        Err(self.failed("list", "")(StoreCause::NoList))
    }

    fn stat(&self, name: &str) -> Result<Option<StoredFile>, StoreError> {
        let stat = self.stat_file(name);
        let stat = self.network.run(&Silent, &Meter::default(), stat);
        stat.map_err(self.failed("look at", name))
    }

    fn delete(&self, name: &str) -> Result<(), StoreError> {
        let refused = require_name(name).err();
        Err(self.failed("delete", name)(
            refused.unwrap_or(StoreCause::ReadOnly),
        ))
    }
}
