//! Integration tests of the pool: order, budget, and every way in which a run may end early.
#![allow(
    clippy::unwrap_used,
    reason = "tests may panic outside test functions too"
)]

mod endings;
mod flow;
mod growth;
mod interruption;

use stook_pool::{Jobs, NoThread, Output, Tasks, Weight, WorkerPool};

/// An item that reserves nothing.
struct Light<T>(T);

impl<T> Weight for Light<T> {
    fn weight(&self) -> usize {
        0
    }
}

/// What ends a pipeline.
#[derive(Debug, PartialEq)]
struct Failed(&'static str);

impl From<NoThread> for Failed {
    fn from(_: NoThread) -> Self {
        Self("no thread")
    }
}

fn pool(jobs: usize) -> WorkerPool<'static> {
    WorkerPool::new("test", Jobs::Fixed(jobs))
}

fn ordered<I: Send, T: Weight + Send, E: From<NoThread>>(
    jobs: usize,
    budget: usize,
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(I, &mut Output<'_, T>) + Sync,
    consume: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let work = |Light(item): Light<I>, output: &mut Output<'_, T>| work(item, output);
    pool(jobs).ordered(budget, items.map(Light), work, consume)
}

fn for_each<T: Send>(jobs: usize, items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    pool(jobs).for_each(items, work);
}

fn recursive<T: Send>(jobs: usize, first: T, work: impl Fn(T, &Tasks<T>) + Sync) {
    pool(jobs).recursive([first], work);
}
