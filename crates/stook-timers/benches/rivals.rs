//! What a scope costs here, as a span of `tracing`, and as one of `fastrace`.
//!
//! An iteration enters and leaves 100 scopes in a row below one that is open already, because `fastrace` collects the
//! spans of a thread until its outermost one ends; so divide by 100, and take the fastest column. The three do not
//! give the same: stook sums by call path; the layer for `tracing` here sums over all spans, which is the least that
//! makes a timer of it; `fastrace` hands every span to a reporter, which here forgets it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use divan::Bencher;
use fastrace::collector::{Reporter, SpanRecord};
use tracing::span::Id;
use tracing_subscriber::layer::{Context, Layer};
use tracing_subscriber::registry::LookupSpan;

const SCOPES: usize = 100;

fn main() {
    divan::main();
}

/// Measures 100 scopes, each entered and left by `enter`.
fn measure<T>(bencher: Bencher<'_, '_>, enter: impl Fn() -> T) {
    bencher.bench_local(|| {
        for _ in 0..SCOPES {
            drop(enter());
        }
    });
}

mod stook {
    use divan::Bencher;
    use stook_timers::{Detail, scope};

    use super::measure;

    fn measure_scope(bencher: Bencher<'_, '_>) {
        let _above = scope!("above");
        measure(bencher, || scope!("scope"));
    }

    #[divan::bench(sample_size = 100)]
    fn a_off(bencher: Bencher<'_, '_>) {
        stook_timers::disable();
        measure_scope(bencher);
    }

    #[divan::bench(sample_size = 100)]
    fn b_on(bencher: Bencher<'_, '_>) {
        stook_timers::enable();
        measure_scope(bencher);
    }

    #[divan::bench(sample_size = 10)]
    fn c_on_with_cpu(bencher: Bencher<'_, '_>) {
        stook_timers::enable_with(Detail::Cpu);
        measure_scope(bencher);
    }

    /// No more calls than a thread keeps.
    #[divan::bench(sample_size = 1, sample_count = 100)]
    fn d_on_with_events(bencher: Bencher<'_, '_>) {
        stook_timers::enable_with(Detail::Events);
        stook_timers::reset();
        measure_scope(bencher);
    }
}

/// Sums the time in all spans.
struct Summing {
    nanoseconds: AtomicU64,
}

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Summing {
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            span.extensions_mut().replace(Instant::now());
        }
    }

    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        let span = context.span(id);
        let begun = span.and_then(|span| span.extensions_mut().remove::<Instant>());
        if let Some(begun) = begun {
            let elapsed = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            self.nanoseconds.fetch_add(elapsed, Ordering::Relaxed);
        }
    }
}

mod tracing_spans {
    use std::sync::atomic::AtomicU64;

    use divan::Bencher;
    use tracing_subscriber::layer::SubscriberExt;
    use tracing_subscriber::registry::Registry;

    use super::{Summing, measure};

    /// Before the first subscriber: afterwards a span asks whether there is one.
    #[divan::bench(sample_size = 100)]
    fn a_without_subscriber(bencher: Bencher<'_, '_>) {
        measure(bencher, || tracing::info_span!("span").entered());
    }

    #[divan::bench(sample_size = 100)]
    fn b_with_registry_and_layer(bencher: Bencher<'_, '_>) {
        let summing = Summing {
            nanoseconds: AtomicU64::new(0),
        };
        tracing::subscriber::with_default(Registry::default().with(summing), || {
            let _above = tracing::info_span!("above").entered();
            measure(bencher, || tracing::info_span!("span").entered());
        });
    }
}

struct Forgetting;

impl Reporter for Forgetting {
    fn report(&mut self, spans: Vec<SpanRecord>) {
        drop(spans);
    }
}

mod fastrace_spans {
    use divan::Bencher;
    use fastrace::collector::{Config, SpanContext};
    use fastrace::local::LocalSpan;

    use super::{Forgetting, SCOPES, measure};

    #[divan::bench(sample_size = 100)]
    fn a_outside_of_a_trace(bencher: Bencher<'_, '_>) {
        measure(bencher, || LocalSpan::enter_with_local_parent("span"));
    }

    #[divan::bench(sample_size = 100)]
    fn b_with_reporter(bencher: Bencher<'_, '_>) {
        fastrace::set_reporter(Forgetting, Config::default());
        bencher.bench_local(|| {
            let root = fastrace::Span::root("root", SpanContext::random());
            let _above = root.set_local_parent();
            for _ in 0..SCOPES {
                drop(LocalSpan::enter_with_local_parent("span"));
            }
        });
    }
}
