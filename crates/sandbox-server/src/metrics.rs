//! Prometheus metrics.
//!
//! The number of series is bounded: languages come from the recipes and routes from the router, statuses and system
//! calls are closed sets, and the series of a key are removed when it is revoked. No label has a value that a client
//! can choose freely.

mod http;
mod pool;
mod process;
mod store;
mod text;
mod usage;

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use sandbox::{PoolStats, Report};
use sandbox_store::Swept;

use http::Http;
use pool::Pool;
use process::Process;
use store::StoreMetrics;
use usage::Usage;

/// Buckets of all histograms, in seconds: a small program in a warm runtime takes about a millisecond, a large build
/// minutes.
const BUCKETS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct LanguageLabel {
    language: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ExecutionLabels {
    language: String,
    isolation: String,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SyscallLabel {
    syscall: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BuildLabel {
    version: &'static str,
}

type DurationHistogram = Family<LanguageLabel, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

/// The outcome of an attempt to deliver a callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallbackOutcome {
    /// The receiver accepted it.
    Delivered,
    /// The attempt failed; there will be another one.
    Failed,
    /// The last attempt failed.
    GivenUp,
}

/// The reader of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// The operator: sees the metrics of each key.
    Operator,
    /// A client: sees only metrics of the whole server.
    Client,
}

/// All metrics of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    accepted: Family<LanguageLabel, Counter>,
    executions: Family<ExecutionLabels, Counter>,
    queue_time: DurationHistogram,
    prepare_time: DurationHistogram,
    compile_time: DurationHistogram,
    run_time: DurationHistogram,
    total_time: DurationHistogram,
    running: Gauge,
    queue_depth: Gauge,
    queue_bytes: Gauge,
    queue_age: Gauge<f64, AtomicU64>,
    cache_hits: Family<LanguageLabel, Counter>,
    cache_misses: Family<LanguageLabel, Counter>,
    denied_syscalls: Family<SyscallLabel, Counter>,
    rate_limited: Counter,
    callbacks: Family<OutcomeLabel, Counter>,
    http: Http,
    usage: Usage,
    pool: Pool,
    store: StoreMetrics,
    process: Process,
}

/// Registers a metric that starts at zero.
fn metric<M: Metric + Clone + Default>(to: &mut Registry, name: &str, help: &str) -> M {
    let metric = M::default();
    to.register(name, help, metric.clone());
    metric
}

/// Registers histograms of durations.
fn durations<L: EncodeLabelSet + Clone + Debug + Eq + Hash + Send + Sync + 'static>(
    to: &mut Registry,
    name: &str,
    help: &str,
) -> Family<L, Histogram, fn() -> Histogram> {
    let family: Family<_, _, fn() -> _> = Family::new_with_constructor(|| Histogram::new(BUCKETS));
    to.register(name, help, family.clone());
    family
}

/// The value of a gauge.
fn gauge_value(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut all = Registry::with_prefix("sandboxd");
        let to = &mut all;
        let build: Family<BuildLabel, Gauge> =
            metric(to, "build_info", "The version of the server; always 1");
        build.get_or_create(&BuildLabel { version: env!("CARGO_PKG_VERSION") }).set(1);
        Self {
            http: Http::register(to),
            usage: Usage::new(),
            pool: Pool::register(to),
            store: StoreMetrics::register(to),
            process: Process::new(),
            accepted: metric(to, "accepted", "Executions accepted"),
            executions: metric(to, "executions", "Executions finished"),
            queue_time: durations(to, "queue_seconds", "Time from acceptance to the start"),
            prepare_time: durations(
                to,
                "prepare_seconds",
                "Time to prepare the sandbox and its files",
            ),
            compile_time: durations(to, "compile_seconds", "Time of the compile stage"),
            run_time: durations(to, "run_seconds", "Time of the run stage"),
            total_time: durations(to, "total_seconds", "Time from acceptance to the report"),
            running: metric(to, "running", "Running executions"),
            queue_depth: metric(to, "queue_depth", "Queued executions"),
            queue_bytes: metric(to, "queue_bytes", "Size of the queued requests"),
            queue_age: metric(to, "queue_age_seconds", "Age of the oldest queued execution"),
            cache_hits: metric(
                to,
                "compile_cache_hits",
                "Compile stages with a result from the cache",
            ),
            cache_misses: metric(
                to,
                "compile_cache_misses",
                "Compile stages without a result in the cache",
            ),
            denied_syscalls: metric(to, "denied_syscalls", "Denied system calls of programs"),
            rate_limited: metric(to, "rate_limited", "Requests refused by the rate limit"),
            callbacks: metric(to, "callbacks", "Attempts to deliver a report to a callback URL"),
            registry: all,
        }
    }

    /// An execution was accepted.
    pub(crate) fn accepted(&self, language: &str) {
        self.accepted.get_or_create(&LanguageLabel { language: language.to_owned() }).inc();
    }

    /// An execution of this key finished, after it was queued for this time.
    pub(crate) fn finished(&self, report: &Report, key: Option<&str>, queued: Duration) {
        self.usage.add(key, report);
        let language = LanguageLabel { language: report.language.clone() };
        let execution = ExecutionLabels {
            language: report.language.clone(),
            isolation: report.isolation.to_string(),
            status: report.status.name(),
        };
        self.executions.get_or_create(&execution).inc();

        let timings = &report.timings_ms;
        let observe = |family: &DurationHistogram, seconds: f64| {
            family.get_or_create(&language).observe(seconds);
        };
        observe(&self.queue_time, queued.as_secs_f64());
        observe(&self.prepare_time, timings.prepare / 1000.0);
        let compile = report.stages.iter().find(|stage| stage.name == sandbox::Stage::Compile);
        if let Some(stage) = compile {
            observe(&self.compile_time, timings.compile / 1000.0);
            let counts = if stage.cached { &self.cache_hits } else { &self.cache_misses };
            counts.get_or_create(&language).inc();
        }
        observe(&self.run_time, timings.run / 1000.0);
        let worked = timings.prepare + timings.compile + timings.run + timings.collect;
        observe(&self.total_time, queued.as_secs_f64() + worked / 1000.0);

        for violation in &report.violations {
            let syscall = SyscallLabel { syscall: violation.syscall.clone() };
            self.denied_syscalls.get_or_create(&syscall).inc_by(violation.count);
        }
    }

    /// The rate limit refused a request.
    pub(crate) fn rate_limited(&self) {
        self.rate_limited.inc();
    }

    /// An attempt to deliver a callback ended.
    pub(crate) fn callback(&self, outcome: CallbackOutcome) {
        let outcome = match outcome {
            CallbackOutcome::Delivered => "delivered",
            CallbackOutcome::Failed => "failed",
            CallbackOutcome::GivenUp => "given_up",
        };
        self.callbacks.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    /// The server responded to a request. `route` is a path template.
    pub(crate) fn answered(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        self.http.answered(method, route, status, took);
    }

    /// A sweep removed records.
    pub(crate) fn swept(&self, swept: Swept) {
        self.store.swept(swept);
    }

    /// Sets the size of the database.
    pub(crate) fn store_size(&self, bytes: u64) {
        self.store.size(bytes);
    }

    /// Sets the size of a cache on disk.
    pub(crate) fn cached(&self, cache: &'static str, bytes: u64) {
        self.usage.cached(cache, bytes);
    }

    /// Sets the metrics of the sandbox pool.
    pub(crate) fn pool(&self, figures: &PoolStats) {
        self.pool.set(figures);
    }

    /// Removes the series of keys that are not valid.
    pub(crate) fn keep_keys(&self, is_valid: impl Fn(&str) -> bool) {
        self.usage.keep(is_valid);
    }

    /// Sets the number of queued executions, and the age of the oldest.
    pub(crate) fn queue(&self, depth: usize, oldest: Duration) {
        self.queue_depth.set(gauge_value(depth));
        self.queue_age.set(oldest.as_secs_f64());
    }

    /// Sets the size of the queued requests.
    pub(crate) fn queue_bytes(&self, bytes: u64) {
        self.queue_bytes.set(gauge_value(bytes));
    }

    /// Sets the number of running executions.
    pub(crate) fn running(&self, count: usize) {
        self.running.set(gauge_value(count));
    }

    /// The metrics for this reader in the Prometheus text format, version 0.0.4.
    pub(crate) fn encode(&self, reader: Reader) -> String {
        self.process.measure();
        let mut text = text::encode(&self.registry);
        if reader == Reader::Operator {
            text += &text::encode(&self.usage.registry);
        }
        text + &text::encode(&self.process.registry)
    }
}

#[cfg(test)]
mod tests;
