//! Counts a request when it comes and sends its answer when it is due.

use super::content::Attribute;
use super::delay::Delay;
use super::options::{OPS, Op, Options};
use super::source::{Caller, Result, Source};
use super::statistics::Counters;
use fuser::{
    FileAttr, Generation, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A number is not given to another inode while the kernel knows the first, so generations are not needed.
pub(super) const GENERATION: Generation = Generation(0);

/// The file system behind a mount.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) source: Source,
    delay: Delay,
    latencies: [Duration; OPS],
    pub(super) ttl: Duration,
    pub(super) loses_writes: bool,
    pub(super) counters: Arc<Counters>,
}

/// A request that has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    arrived: Instant,
    latency: Duration,
}

impl Server {
    pub(super) fn new(
        source: &Path,
        options: &Options,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        Ok(Self {
            source: Source::new(source)?,
            delay: Delay::new(options.slots, Arc::clone(&counters))?,
            latencies: options.latencies,
            ttl: options.ttl,
            loses_writes: options.loses_writes,
            counters,
        })
    }

    pub(super) fn begin(&self, op: Op) -> Call {
        self.counters.count(op, 1);
        Call {
            arrived: Instant::now(),
            latency: self.latencies[op as usize],
        }
    }

    pub(super) fn answer<R: Refuse, T: Send + 'static>(
        &self,
        call: Call,
        reply: R,
        result: Result<T>,
        send: impl FnOnce(R, T) + Send + 'static,
    ) {
        self.delay
            .answer(call.arrived, call.latency, move || match result {
                Ok(value) => send(reply, value),
                Err(error) => reply.refuse(fuser::Errno::from_i32(error.raw_os_error())),
            });
    }

    pub(super) fn answer_empty(&self, call: Call, reply: ReplyEmpty, result: Result<()>) {
        self.answer(call, reply, result, |reply, ()| reply.ok());
    }

    pub(super) fn answer_entry(&self, call: Call, reply: ReplyEntry, result: Result<FileAttr>) {
        let ttl = self.ttl;
        self.answer(call, reply, result, move |reply, attributes| {
            reply.entry(&ttl, &attributes, GENERATION);
        });
    }

    pub(super) fn answer_attributes(&self, call: Call, reply: ReplyAttr, result: Result<FileAttr>) {
        let ttl = self.ttl;
        self.answer(call, reply, result, move |reply, attributes| {
            reply.attr(&ttl, &attributes);
        });
    }

    pub(super) fn answer_attribute(
        &self,
        call: Call,
        reply: ReplyXattr,
        result: Result<Attribute>,
    ) {
        self.answer(call, reply, result, |reply, attribute| match attribute {
            Attribute::Value(value) => reply.data(&value),
            Attribute::Length(length) => reply.size(length),
        });
    }
}

/// An answer that can be an error.
pub(super) trait Refuse: Send + 'static {
    fn refuse(self, error: fuser::Errno);
}

macro_rules! refuse {
    ($($reply:ty),*) => {
        $(impl Refuse for $reply {
            fn refuse(self, error: fuser::Errno) {
                self.error(error);
            }
        })*
    };
}

refuse!(
    ReplyAttr,
    ReplyCreate,
    ReplyData,
    ReplyDirectory,
    ReplyEmpty,
    ReplyEntry,
    ReplyLseek,
    ReplyOpen,
    ReplyStatfs,
    ReplyWrite,
    ReplyXattr
);

pub(super) fn caller(request: &Request) -> Caller {
    Caller {
        user: request.uid(),
        group: request.gid(),
    }
}
