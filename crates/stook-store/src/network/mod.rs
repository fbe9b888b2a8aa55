//! Connections over HTTP: one client and one runtime for each store that needs them, made when it is opened.
//!
//! ```text
//!   calling thread   run(future) ── polls it, asks every 100 ms: interrupted? nothing moved for too long?
//!   worker threads   sockets, TLS, tasks that a future has spawned
//! ```
//! The caller waits for its own future, so that local files are read and written on its thread. No request has a
//! time limit as a whole: a volume may take hours. What counts is that bytes move ([`Meter`]).

mod cause;
mod meter;

pub(crate) use cause::connection_cause;
pub(crate) use meter::{Meter, MeteredBody};

use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use reqwest::Client;
use reqwest::redirect::Policy;
use tokio::runtime::{Builder, Runtime};
use tokio::time::interval;

use crate::error::StoreCause;
use crate::program::Interruption;
use crate::settings::{NetworkSettings, Settings};
use crate::transfer::TransferObserver;

/// How often it is asked whether a transfer should end.
const TICK: Duration = Duration::from_millis(100);

/// Threads that serve the sockets of a store; the callers' threads do the rest.
const WORKERS: usize = 2;

/// A client and what it runs on.
#[derive(Debug)]
pub(crate) struct Network {
    pub(crate) client: Client,
    idle_timeout: Duration,
    interruption: Interruption,
    /// Some until it is dropped.
    runtime: Option<Runtime>,
}

impl Network {
    /// # Errors
    /// `Io` if no thread can be started, or the system has no certificates.
    pub(crate) fn new(settings: &Settings) -> Result<Self, StoreCause> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("stook-network")
            .enable_all()
            .build()
            .map_err(StoreCause::Io)?;
        Ok(Self {
            client: client(&settings.network).map_err(|error| connection_cause(&error))?,
            idle_timeout: settings.network.idle_timeout,
            interruption: settings.interruption.clone(),
            runtime: Some(runtime),
        })
    }

    /// Waits for a future, which counts what it moves.
    ///
    /// # Errors
    /// `Interrupted`; `Timeout` if nothing moved for too long; those of the future.
    pub(crate) fn run<T>(
        &self,
        observer: &dyn TransferObserver,
        meter: &Meter,
        future: impl Future<Output = Result<T, StoreCause>>,
    ) -> Result<T, StoreCause> {
        let is_interrupted = || observer.is_interrupted() || self.interruption.is_interrupted();
        self.wait(is_interrupted, meter, future)
    }

    /// Waits for a future that tidies up after another, for a short time only.
    pub(crate) fn run_briefly(
        &self,
        limit: Duration,
        meter: &Meter,
        future: impl Future<Output = Result<(), StoreCause>>,
    ) {
        let end = Instant::now() + limit;
        // What cannot be tidied up is no failure: there is one already.
        let _ = self.wait(|| Instant::now() > end, meter, future);
    }

    fn wait<T>(
        &self,
        is_interrupted: impl Fn() -> bool,
        meter: &Meter,
        future: impl Future<Output = Result<T, StoreCause>>,
    ) -> Result<T, StoreCause> {
        if is_interrupted() {
            return Err(StoreCause::Interrupted);
        }
        let Some(runtime) = &self.runtime else {
            return Err(StoreCause::Io(io::ErrorKind::NotConnected.into()));
        };
        runtime.block_on(meter.scope(async {
            let mut future = pin!(future);
            let mut ticks = interval(TICK);
            let (mut moved, mut since) = (meter.count(), Instant::now());
            loop {
                tokio::select! {
                    biased;
                    _ = ticks.tick() => {}
                    result = &mut future => return result,
                }
                if is_interrupted() {
                    return Err(StoreCause::Interrupted);
                }
                if meter.count() != moved {
                    (moved, since) = (meter.count(), Instant::now());
                } else if since.elapsed() >= self.idle_timeout {
                    return Err(StoreCause::Timeout(self.idle_timeout.as_secs()));
                }
            }
        }))
    }
}

impl Drop for Network {
    /// Does not wait: the system may be looking for a name that never comes.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn client(settings: &NetworkSettings) -> reqwest::Result<Client> {
    // Another one may be set already, by a program that uses TLS itself; either will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .user_agent(concat!("stook/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(settings.connect_timeout)
        .redirect(Policy::none())
        .http1_only()
        .no_proxy();
    let without = settings.no_proxy.as_deref().unwrap_or_default();
    let without = || reqwest::NoProxy::from_string(without);
    if let Some(proxy) = &settings.http_proxy {
        builder = builder.proxy(reqwest::Proxy::http(proxy)?.no_proxy(without()));
    }
    if let Some(proxy) = &settings.https_proxy {
        builder = builder.proxy(reqwest::Proxy::https(proxy)?.no_proxy(without()));
    }
    builder.build()
}
