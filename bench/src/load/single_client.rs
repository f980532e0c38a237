//! One client: the library and the server in turns.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use sandbox::{Report, Start, Status, Timings};

use super::{STDOUT, Setup};
use crate::cases::Run;
use crate::client::Client;
use crate::measure::{Difference, Series, median_number};

/// Pairs at the start that are not counted: files are read for the first time, slots are prepared.
const WARM_UP: usize = 20;

/// What one client sees.
pub(super) struct SingleClient {
    pub(super) library: Way,
    pub(super) server: Way,
    /// The cheapest request: connection, client and the server's HTTP.
    pub(super) health: Series,
}

/// The times of one way, and where its reports say that they went.
#[derive(Default)]
pub(super) struct Way {
    pub(super) total: Series,
    timings: Vec<Timings>,
    /// Those whose runtime had been started and waited.
    warm: usize,
}

impl SingleClient {
    /// How much longer the median takes over HTTP; nothing if it takes less.
    pub(super) fn added(&self) -> Duration {
        let median = |way: &Way| way.total.summary().median;
        median(&self.server).saturating_sub(median(&self.library))
    }

    /// The same, pair by pair, with its uncertainty.
    pub(super) fn added_by_pair(&self) -> Difference {
        self.server.total.difference_by_round(&self.library.total)
    }
}

impl Way {
    fn push(&mut self, total: Duration, report: &Report) {
        self.total.push(Run::lasting(total));
        self.timings.push(report.timings_ms);
        self.warm += usize::from(report.stages.iter().all(|stage| stage.start == Start::Warm));
    }

    /// How many of a hundred found their runtime waiting.
    pub(super) fn warm_share(&self) -> usize {
        self.warm * 100 / self.timings.len().max(1)
    }

    /// The median of one of the parts that reports tell apart, in milliseconds.
    pub(super) fn median_of(&self, part: impl Fn(&Timings) -> f64) -> f64 {
        median_number(self.timings.iter().map(part).collect())
    }
}

/// Measures `pairs` pairs, in turns of `turn` requests, each after `pause`.
pub(super) fn measure(
    setup: &Setup,
    pairs: usize,
    turn: usize,
    pause: Duration,
) -> anyhow::Result<SingleClient> {
    let mut client = Client::connect(setup.daemon.address()).context("connect")?;
    let mut found =
        SingleClient { library: Way::default(), server: Way::default(), health: Series::default() };
    let mut turns = 0;
    let mut done = 0;
    while done < WARM_UP + pairs {
        let mut through = |is_http: bool| -> anyhow::Result<Vec<_>> {
            let one = |client: &mut Client| {
                std::thread::sleep(pause);
                if is_http { over_http(setup, client) } else { through_library(setup) }
            };
            (0..turn).map(|_| one(&mut client)).collect()
        };
        // Each follows the other equally often: both leave something to be cleaned up behind them.
        let is_http_first = turns % 2 == 1;
        let (first, second) = (through(is_http_first)?, through(!is_http_first)?);
        let (library, server) = if is_http_first { (second, first) } else { (first, second) };
        let health = health(setup, &mut client)?;
        if done >= WARM_UP {
            for (way, runs) in [(&mut found.library, &library), (&mut found.server, &server)] {
                for (total, report) in runs {
                    way.push(*total, report);
                }
            }
            found.health.push(Run::lasting(health));
        }
        turns += 1;
        done += turn;
    }
    Ok(found)
}

fn health(setup: &Setup, client: &mut Client) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let answer = client.exchange(&setup.health)?;
    let took = started.elapsed();
    ensure!(answer.status == 200, "health: {answer:?}");
    Ok(took)
}

fn through_library(setup: &Setup) -> anyhow::Result<(Duration, Report)> {
    let started = Instant::now();
    let report = setup.library()?;
    Ok((started.elapsed(), report))
}

fn over_http(setup: &Setup, client: &mut Client) -> anyhow::Result<(Duration, Report)> {
    let started = Instant::now();
    let answer = client.exchange(&setup.execute)?;
    let total = started.elapsed();
    let body = String::from_utf8_lossy(&answer.body);
    ensure!(answer.status == 200, "{}: {body}", answer.status);
    let report: Report = serde_json::from_slice(&answer.body).with_context(|| body.to_string())?;
    ensure!(report.status == Status::Completed && report.stdout == STDOUT, "{body}");
    Ok((total, report))
}
