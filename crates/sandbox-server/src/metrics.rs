//! What is counted, for Prometheus.
//!
//! Labels have few values: languages are those of the recipes, routes those of the router, statuses and
//! system calls are closed sets, and keys lose their series when they are taken back. Nothing that a
//! client chooses freely becomes a label.

mod http;
mod pool;
mod process;
mod store;
mod usage;

mod callbacks;
mod text;

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use sandbox::{PoolStats, Report};
use sandbox_store::Swept;

use http::Http;
use pool::Pool;
use process::Process;
use store::Kept;
use usage::Usage;

pub(crate) use callbacks::CallbackOutcome;
use callbacks::Callbacks;

/// Bounds of all histograms, in seconds: a warm hello takes about a millisecond, a large build minutes.
const BOUNDS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0, 120.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfLanguage {
    language: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfExecution {
    language: String,
    isolation: String,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfSyscall {
    syscall: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfBuild {
    version: &'static str,
}

type Seconds = Family<OfLanguage, Histogram, fn() -> Histogram>;

/// Who reads metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Whoever runs the server, and may know what each of its clients does.
    Operator,
    /// One client among others.
    Client,
}

/// All counters of a server.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    accepted: Family<OfLanguage, Counter>,
    executions: Family<OfExecution, Counter>,
    queue_time: Seconds,
    prepare_time: Seconds,
    compile_time: Seconds,
    run_time: Seconds,
    total_time: Seconds,
    running: Gauge,
    queue_depth: Gauge,
    queue_bytes: Gauge,
    queue_age: Gauge<f64, AtomicU64>,
    cache_hits: Family<OfLanguage, Counter>,
    cache_misses: Family<OfLanguage, Counter>,
    denied_syscalls: Family<OfSyscall, Counter>,
    rate_limited: Counter,
    callbacks: Callbacks,
    http: Http,
    usage: Usage,
    pool: Pool,
    kept: Kept,
    process: Process,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let seconds = || Seconds::new_with_constructor(|| Histogram::new(BOUNDS));
        let mut registry = Registry::with_prefix("sandboxd");
        let mut metrics = Self {
            http: Http::register(&mut registry),
            usage: Usage::new(),
            pool: Pool::register(&mut registry),
            kept: Kept::register(&mut registry),
            process: Process::new(),
            registry,
            accepted: Family::default(),
            executions: Family::default(),
            queue_time: seconds(),
            prepare_time: seconds(),
            compile_time: seconds(),
            run_time: seconds(),
            total_time: seconds(),
            running: Gauge::default(),
            queue_depth: Gauge::default(),
            queue_bytes: Gauge::default(),
            queue_age: Gauge::default(),
            cache_hits: Family::default(),
            cache_misses: Family::default(),
            denied_syscalls: Family::default(),
            rate_limited: Counter::default(),
            callbacks: Callbacks::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let build = Family::<OfBuild, Gauge>::default();
        build.get_or_create(&OfBuild { version: env!("CARGO_PKG_VERSION") }).set(1);
        let registry = &mut self.registry;
        registry.register("build_info", "The version that runs; always 1", build);
        registry.register("accepted", "Executions accepted", self.accepted.clone());
        registry.register("executions", "Executions finished", self.executions.clone());
        let times = [
            ("queue_seconds", "Time from acceptance to the start", &self.queue_time),
            ("prepare_seconds", "Time to build walls and place files", &self.prepare_time),
            (
                "compile_seconds",
                "Time of the compile stage, where there was one",
                &self.compile_time,
            ),
            ("run_seconds", "Time of the run stage", &self.run_time),
            ("total_seconds", "Time from acceptance to the report", &self.total_time),
        ];
        for (name, help, family) in times {
            registry.register(name, help, family.clone());
        }
        registry.register("running", "Executions that run now", self.running.clone());
        registry.register("queue_depth", "Executions that wait now", self.queue_depth.clone());
        let help = "Bytes of the requests that wait now";
        registry.register("queue_bytes", help, self.queue_bytes.clone());
        let help = "How long the oldest waiting execution has waited";
        registry.register("queue_age_seconds", help, self.queue_age.clone());
        let help = "Compile stages answered from the cache";
        registry.register("compile_cache_hits", help, self.cache_hits.clone());
        let help = "Compile stages that had to compile";
        registry.register("compile_cache_misses", help, self.cache_misses.clone());
        let help = "System calls of programs that were denied";
        registry.register("denied_syscalls", help, self.denied_syscalls.clone());
        let help = "Requests refused because their client sent too many";
        registry.register("rate_limited", help, self.rate_limited.clone());
        self.callbacks.register(registry);
    }

    /// An execution was accepted.
    pub(crate) fn accepted(&self, language: &str) {
        self.accepted.get_or_create(&OfLanguage { language: language.to_owned() }).inc();
    }

    /// An execution of this key ended, after it had waited so long for its turn.
    pub(crate) fn finished(&self, report: &Report, key: Option<&str>, queued: Duration) {
        self.usage.add(key, report);
        let language = OfLanguage { language: report.language.clone() };
        let execution = OfExecution {
            language: report.language.clone(),
            isolation: report.isolation.to_string(),
            status: report.status.name(),
        };
        self.executions.get_or_create(&execution).inc();

        let timings = &report.timings_ms;
        let observe = |family: &Seconds, seconds: f64| {
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
            let syscall = OfSyscall { syscall: violation.syscall.clone() };
            self.denied_syscalls.get_or_create(&syscall).inc_by(violation.count);
        }
    }

    /// A request was refused because its client sent too many.
    pub(crate) fn rate_limited(&self) {
        self.rate_limited.inc();
    }

    /// A callback was tried.
    pub(crate) fn callback(&self, outcome: CallbackOutcome) {
        self.callbacks.count(outcome);
    }

    /// A request was answered. Its route is the router's, not the client's.
    pub(crate) fn answered(&self, method: &'static str, route: &str, status: u16, took: Duration) {
        self.http.answered(method, route, status, took);
    }

    /// What a sweep removed.
    pub(crate) fn swept(&self, swept: Swept) {
        self.kept.swept(swept);
    }

    /// So large is the store now.
    pub(crate) fn store_size(&self, bytes: u64) {
        self.kept.size(bytes);
    }

    /// A cache keeps this many bytes on the disk.
    pub(crate) fn cached(&self, cache: &'static str, bytes: u64) {
        self.usage.cached(cache, bytes);
    }

    /// So many sandboxes are prepared now.
    pub(crate) fn pool(&self, figures: &PoolStats) {
        self.pool.set(figures);
    }

    /// Keys that are not valid any more are no longer told of.
    pub(crate) fn keep_keys(&self, is_valid: impl Fn(&str) -> bool) {
        self.usage.keep(is_valid);
    }

    /// So many wait now, the oldest for so long.
    pub(crate) fn queue(&self, depth: usize, oldest: Duration) {
        self.queue_depth.set(i64::try_from(depth).unwrap_or(i64::MAX));
        self.queue_age.set(oldest.as_secs_f64());
    }

    /// The requests that wait now hold this many bytes.
    pub(crate) fn queue_bytes(&self, bytes: u64) {
        self.queue_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }

    /// So many run now.
    pub(crate) fn running(&self, count: usize) {
        self.running.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Everything that this reader may know in Prometheus' text format, version 0.0.4.
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
