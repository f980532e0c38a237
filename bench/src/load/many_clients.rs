//! Many clients: rounds of the server and rounds of the library, one after the other.

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::{Plan, Setup};
use crate::client::{Answer, Client};
use crate::measure::{Summary, median_number};

/// A client says only a few hundred words; most of what a thread reserves is never touched.
const STACK: usize = 128 << 10;
/// For the cheapest request a short round is enough.
const HEALTH_ROUND: Duration = Duration::from_millis(500);

/// The measurements with one number of clients.
pub(super) struct ManyClients {
    pub(super) clients: usize,
    /// Threads that call the library: as many as the server has workers, and no more than clients.
    pub(super) threads: usize,
    pub(super) server: Vec<Round>,
    pub(super) library: Vec<Round>,
    /// The same clients with the cheapest request.
    pub(super) health: Round,
}

/// What happened from the first request until the last answer.
#[derive(Default)]
pub(super) struct Round {
    times: Vec<Duration>,
    errors: usize,
    /// One of the errors, in words.
    error: Option<String>,
    elapsed: Duration,
}

impl ManyClients {
    /// The median over the rounds of the server's executions in a second over the library's.
    pub(super) fn share_by_round(&self) -> f64 {
        let pairs = self.server.iter().zip(&self.library);
        median_number(
            pairs.map(|(server, library)| server.per_second() / library.per_second()).collect(),
        )
    }

    pub(super) fn errors(&self) -> usize {
        self.server.iter().map(|round| round.errors).sum()
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.server.iter().find_map(|round| round.error.as_deref())
    }
}

impl Round {
    pub(super) fn per_second(&self) -> f64 {
        count(self.times.len()) / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Over several rounds, answers and the time they took.
    pub(super) fn per_second_of(rounds: &[Self]) -> f64 {
        let answers: usize = rounds.iter().map(|round| round.times.len()).sum();
        let elapsed: Duration = rounds.iter().map(|round| round.elapsed).sum();
        count(answers) / elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    pub(super) fn summary_of(rounds: &[Self]) -> Summary {
        Summary::of(rounds.iter().flat_map(|round| &round.times).copied().collect())
    }

    fn add(&mut self, other: Self) {
        self.times.extend(other.times);
        self.errors += other.errors;
        self.error = self.error.take().or(other.error);
    }
}

pub(super) fn measure(setup: &Setup, plan: &Plan, clients: usize) -> anyhow::Result<ManyClients> {
    let threads = plan.concurrency.min(clients);
    let health = server_round(setup, clients, HEALTH_ROUND, Endpoint::Health)?;
    let (mut server, mut library) = (Vec::new(), Vec::new());
    for round in 0..plan.rounds {
        // Neither always has the machine as the other left it.
        if round % 2 == 0 {
            server.push(server_round(setup, clients, plan.round, Endpoint::Execute)?);
            library.push(library_round(setup, threads, plan.round)?);
        } else {
            library.push(library_round(setup, threads, plan.round)?);
            server.push(server_round(setup, clients, plan.round, Endpoint::Execute)?);
        }
    }
    Ok(ManyClients { clients, threads, server, library, health })
}

#[derive(Clone, Copy)]
enum Endpoint {
    Execute,
    Health,
}

/// Every client asks, waits for the answer and asks again, until the time is up.
fn server_round(
    setup: &Setup,
    clients: usize,
    round: Duration,
    endpoint: Endpoint,
) -> anyhow::Result<Round> {
    let request = match endpoint {
        Endpoint::Execute => &setup.execute,
        Endpoint::Health => &setup.health,
    };
    let address: SocketAddr = setup.daemon.address();
    together(clients, |start| {
        let mut client = Client::connect(address);
        start.wait();
        let until = Instant::now() + round;
        let mut found = Round::default();
        while Instant::now() < until {
            let started = Instant::now();
            let answer = match &mut client {
                Ok(client) => client.exchange(request).map_err(|error| error.to_string()),
                Err(error) => Err(error.to_string()),
            };
            let time = started.elapsed();
            match answer.and_then(|answer| check(&answer, endpoint)) {
                Ok(()) => found.times.push(time),
                Err(error) => {
                    found.errors += 1;
                    found.error = Some(error);
                }
            }
            if client.is_err() {
                client = Client::connect(address);
            }
        }
        Ok(found)
    })
}

fn library_round(setup: &Setup, threads: usize, round: Duration) -> anyhow::Result<Round> {
    together(threads, |start| {
        start.wait();
        let until = Instant::now() + round;
        let mut found = Round::default();
        while Instant::now() < until {
            let started = Instant::now();
            setup.library()?;
            found.times.push(started.elapsed());
        }
        Ok(found)
    })
}

/// Looks for what a right answer has in it: parsing them all would be the client's cost.
fn check(answer: &Answer, endpoint: Endpoint) -> Result<(), String> {
    let is_right = match endpoint {
        Endpoint::Health => true,
        Endpoint::Execute => {
            let has = |part: &str| answer.body.windows(part.len()).any(|at| at == part.as_bytes());
            has(r#""status":"completed""#) && has(r#""stdout":"Hello, World!\n""#)
        }
    };
    if answer.status == 200 && is_right {
        return Ok(());
    }
    Err(format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body)))
}

/// Runs `work` on this many threads, which start together.
fn together(
    threads: usize,
    work: impl Fn(&Barrier) -> anyhow::Result<Round> + Sync,
) -> anyhow::Result<Round> {
    let start = Barrier::new(threads + 1);
    std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|_| {
                let thread = std::thread::Builder::new().stack_size(STACK);
                thread.spawn_scoped(scope, || work(&start)).context("start a client")
            })
            .collect::<Result<_, _>>()?;
        start.wait();
        let started = Instant::now();
        let mut all = Round::default();
        for handle in handles {
            let round = handle.join().map_err(|_| anyhow::anyhow!("a client broke off"))?;
            all.add(round?);
        }
        all.elapsed = started.elapsed();
        Ok(all)
    })
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
