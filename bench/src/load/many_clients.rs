//! Many clients: rounds of the server and rounds of the library, one after the other.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::{Plan, Setup};
use crate::client::{Answer, Client};
use crate::rounds::{Round, alternate, gain, together};

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

impl ManyClients {
    /// The median over the rounds of the server's executions in a second over the library's.
    pub(super) fn share_by_round(&self) -> f64 {
        gain(&self.server, &self.library)
    }

    pub(super) fn errors(&self) -> usize {
        self.server.iter().map(|round| round.errors).sum()
    }

    pub(super) fn error(&self) -> Option<&str> {
        self.server.iter().find_map(|round| round.error.as_deref())
    }
}

pub(super) fn measure(setup: &Setup, plan: &Plan, clients: usize) -> anyhow::Result<ManyClients> {
    let threads = plan.concurrency().min(clients);
    let length = Duration::from_secs(plan.seconds);
    let health = server_round(setup, clients, HEALTH_ROUND, &setup.health, is_ok)?;
    let (server, library) = alternate(
        plan.rounds,
        || server_round(setup, clients, length, &setup.execute, is_right),
        || {
            let library = || {
                let started = Instant::now();
                setup.library().map(|_| started.elapsed())
            };
            together(threads, length, || library)?.without_errors()
        },
    )?;
    Ok(ManyClients { clients, threads, server, library, health })
}

/// Every client asks, waits for the answer and asks again, until the time is up.
fn server_round(
    setup: &Setup,
    clients: usize,
    length: Duration,
    request: &[u8],
    check: fn(&Answer) -> bool,
) -> anyhow::Result<Round> {
    let address = setup.daemon.address();
    together(clients, length, || {
        let mut client = Client::connect(address).unwrap_or_else(|_| Client::new(address));
        move || {
            let started = Instant::now();
            let answer = client.exchange(request)?;
            let time = started.elapsed();
            let body = String::from_utf8_lossy(&answer.body);
            ensure!(check(&answer), "{}: {body}", answer.status);
            Ok(time)
        }
    })
}

fn is_ok(answer: &Answer) -> bool {
    answer.status == 200
}

/// Looks for what a right answer has in it: parsing them all would be the client's cost.
fn is_right(answer: &Answer) -> bool {
    let has = |part: &str| answer.body.windows(part.len()).any(|at| at == part.as_bytes());
    is_ok(answer) && has(r#""status":"completed""#) && has(r#""stdout":"Hello, World!\n""#)
}
