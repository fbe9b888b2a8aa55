//! What the library sends goes through here: bytes are counted, answers that refuse are kept, and the last request of
//! an upload in parts gets its condition, which the library cannot express.

use std::future::Future;
use std::io;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode, Url};

use crate::error::StoreCause;
use crate::network::{Meter, MeteredBody, connection_cause};
use crate::s3::refusal::{refusal, refusal_in_success};

tokio::task_local! {
    static CALL: Call;
}

/// One operation: what its requests need, and why one of them failed.
#[derive(Debug, Clone, Default)]
pub(super) struct Call {
    /// A header for the request that ends an upload in parts.
    condition: Option<(HeaderName, HeaderValue)>,
    cause: Arc<Mutex<Option<StoreCause>>>,
}

impl Call {
    pub(super) fn with_condition(condition: Option<(HeaderName, HeaderValue)>) -> Self {
        Self {
            condition,
            ..Self::default()
        }
    }

    /// Waits for what the library does.
    ///
    /// # Errors
    /// Why the server refused, or the connection failed.
    pub(super) async fn ask<T>(
        self,
        future: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, StoreCause> {
        let result = CALL.scope(self.clone(), future).await;
        result.map_err(|error| {
            let cause = stook_sys::lock(&self.cause).take();
            cause.unwrap_or_else(|| library_cause(error))
        })
    }

    fn current() -> Self {
        CALL.try_with(Clone::clone).unwrap_or_default()
    }

    fn fail(&self, cause: StoreCause) {
        *stook_sys::lock(&self.cause) = Some(cause);
    }
}

/// What the library found by itself.
fn library_cause(error: object_store::Error) -> StoreCause {
    match error {
        object_store::Error::NotFound { .. } => StoreCause::NotFound,
        object_store::Error::InvalidPath { .. } => StoreCause::Name,
        // It asked for a range, and got another answer.
        object_store::Error::NotSupported { .. } => StoreCause::NoRanges,
        other => StoreCause::Io(io::Error::other(other)),
    }
}

/// Gives the library our client.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    pub(super) client: reqwest::Client,
    /// Whether requests to the store are signed; those for credentials never are.
    pub(super) is_signed: bool,
}

impl HttpConnector for Connector {
    fn connect(&self, _options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

#[async_trait]
impl HttpService for Connector {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (call, meter) = (Call::current(), Meter::current());
        let is_completion = is_completion(&request);
        let is_for_credentials = self.is_signed && !is_signature(request.headers());
        let request = prepare(request, &call, &meter)?;
        let sent = self.client.execute(request).await;
        let response = sent.map_err(|error| failed(&call, error))?;
        meter.add(0);
        let (mut parts, body) = http::Response::<reqwest::Body>::from(response).into_parts();
        let of_body = call.clone();
        let body = MeteredBody::new(body, meter, move |error| failed(&of_body, error));
        let mut body = HttpResponseBody::new(body);
        if !parts.status.is_success() || is_completion {
            let bytes = body.bytes().await?;
            if is_for_credentials {
                call.fail(StoreCause::Login { command: None });
            } else if !parts.status.is_success() {
                call.fail(refusal(parts.status, &parts.headers, &bytes));
            } else if let Some(cause) = refusal_in_success(&bytes) {
                call.fail(cause);
                parts.status = StatusCode::BAD_REQUEST;
            }
            body = bytes.into();
        }
        Ok(HttpResponse::from_parts(parts, body))
    }
}

fn prepare(
    request: HttpRequest,
    call: &Call,
    meter: &Meter,
) -> Result<reqwest::Request, HttpError> {
    let is_completion = is_completion(&request);
    let (parts, body) = request.into_parts();
    let url = Url::parse(&parts.uri.to_string());
    let url = url.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
    let mut request = reqwest::Request::new(parts.method, url);
    *request.headers_mut() = parts.headers;
    if let (true, Some((name, value))) = (is_completion, &call.condition) {
        request.headers_mut().insert(name, value.clone());
    }
    // Its own question whether it is empty has the wrong answer for payloads.
    if body.content_length() > 0 {
        let body = MeteredBody::new(body, meter.clone(), |error: HttpError| error);
        *request.body_mut() = Some(reqwest::Body::wrap(body));
    }
    Ok(request)
}

/// Returns true for the request that makes one object of parts.
fn is_completion(request: &HttpRequest) -> bool {
    let query = request.uri().query().unwrap_or_default();
    request.method() == Method::POST && query.contains("uploadId=")
}

fn is_signature(headers: &HeaderMap) -> bool {
    let value = headers.get(AUTHORIZATION);
    value.is_some_and(|value| value.as_bytes().starts_with(b"AWS4-"))
}

fn failed(call: &Call, error: reqwest::Error) -> HttpError {
    call.fail(connection_cause(&error));
    HttpError::new(HttpErrorKind::Unknown, error)
}
