//! Integration tests of the pool: order, budget, and every way in which a run may end early.
#![allow(
    clippy::unwrap_used,
    reason = "tests may panic outside test functions too"
)]

mod endings;
mod flow;
mod growth;

use stook_pool::{Crew, Jobs, Output, Tasks, Weight};

/// An item that reserves nothing.
struct Light<T>(T);

impl<T> Weight for Light<T> {
    fn weight(&self) -> usize {
        0
    }
}

fn crew(jobs: usize) -> Crew {
    Crew::new("test", Jobs::Fixed(jobs))
}

fn ordered<I: Send, T: Weight + Send, E>(
    jobs: usize,
    budget: usize,
    items: impl Iterator<Item = I> + Send,
    work: impl Fn(I, &mut Output<'_, T>) + Sync,
    consume: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let work = |Light(item): Light<I>, output: &mut Output<'_, T>| work(item, output);
    crew(jobs).ordered(budget, items.map(Light), work, consume)
}

fn for_each<T: Send>(jobs: usize, items: impl Iterator<Item = T> + Send, work: impl Fn(T) + Sync) {
    crew(jobs).for_each(items, work);
}

fn recursive<T: Send>(jobs: usize, first: T, work: impl Fn(T, &Tasks<T>) + Sync) {
    crew(jobs).recursive([first], work);
}
