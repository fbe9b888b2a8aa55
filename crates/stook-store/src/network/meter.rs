//! Counts bytes that go over a connection, so that a transfer that stands still is told from one that is slow.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

tokio::task_local! {
    static METER: Meter;
}

/// How much one operation has moved; it only matters that it changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Meter(Arc<AtomicU64>);

impl Meter {
    /// Returns the meter of the operation that runs, or one that nobody reads.
    pub(crate) fn current() -> Self {
        METER.try_with(Clone::clone).unwrap_or_default()
    }

    /// Runs a future whose requests are counted here.
    pub(crate) fn scope<F: Future>(&self, future: F) -> impl Future<Output = F::Output> + use<F> {
        METER.scope(self.clone(), future)
    }

    /// Counts bytes, or an answer without any.
    pub(crate) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64 + 1, Ordering::Relaxed);
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A body whose bytes are counted, and whose errors are turned into those of another kind.
pub(crate) struct MeteredBody<B, F> {
    body: B,
    meter: Meter,
    failed: F,
}

impl<B, F> MeteredBody<B, F> {
    pub(crate) fn new(body: B, meter: Meter, failed: F) -> Self {
        Self {
            body,
            meter,
            failed,
        }
    }
}

impl<B, F, E> Body for MeteredBody<B, F>
where
    B: Body<Data = Bytes> + Unpin,
    F: FnMut(B::Error) -> E + Unpin,
{
    type Data = Bytes;
    type Error = E;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        polled.map(|frame| {
            let frame = frame?;
            if let Ok(frame) = &frame {
                self.meter.add(frame.data_ref().map_or(0, Bytes::len));
            }
            Some(frame.map_err(&mut self.failed))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
