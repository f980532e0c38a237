//! Two keys of one `sandboxd`, one of them hostile: what the other one notices.
//!
//! The victim sends one small program after another. Phases in which it is alone and phases in which the attacker's
//! clients send everything they can to every endpoint ([`attack`], [`attacker`]) take turns, so that whatever else the machine does
//! falls on both alike. Afterwards the victim's history, workspace, idempotency key, compile cache and quota must be
//! what they were ([`victim`]), and its 95th percentile is compared.

mod attack;
pub(crate) mod attacker;
mod victim;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use sandbox_linux::cgroup::Hierarchy;
use serde_json::{Value, json};

use crate::client::{Client, request};
use crate::daemon::{self, Daemon};
use crate::host::HostFacts;
use crate::table::grid;

use attack::{Attack, Tally};
use attacker::Attacker;
use victim::Victim;

/// The 95th percentile beside the attacker, at most this many times the one alone.
const MAX_RATIO: f64 = 2.0;

/// How much is measured.
pub(crate) struct Plan {
    /// How long the attacker attacks in all.
    pub(crate) attack: Duration,
    /// Into how many phases that is divided.
    pub(crate) phases: u32,
    /// Connections of the attacker.
    pub(crate) clients: usize,
    /// Whether the exit code says what the ratio is.
    pub(crate) judges_latency: bool,
    /// The server's program, where it is not the one beside this one.
    pub(crate) server: Option<PathBuf>,
    /// Where `tenants.json` and `tenants.txt` go, if anywhere.
    pub(crate) results: Option<PathBuf>,
}

impl Plan {
    fn phase(&self) -> Duration {
        self.attack / self.phases
    }
}

struct Findings {
    host: HostFacts,
    /// Requests of the attacker in each second.
    attack_rate: f64,
    alone: Latencies,
    beside: Latencies,
    attacks: Tally,
    /// What the victim lost or was refused.
    losses: Vec<String>,
    /// Endpoints of the API's description that no attack has reached.
    untouched: Vec<String>,
}

/// How long the victim's requests took, in order of size.
#[derive(Default)]
struct Latencies(Vec<Duration>);

/// Runs the phases, prints the findings, and ends with 1 if the victim lost anything.
pub(crate) fn run(plan: &Plan) -> anyhow::Result<ExitCode> {
    let host = HostFacts::gather("");
    // First of all: it may move this process into another cgroup.
    let hierarchy = Hierarchy::detect();
    let program = plan.server.clone().map_or_else(daemon::beside_us, Ok)?;
    let (daemon, keys) = Daemon::start_with_keys(&program, ["victim", "attacker"])?;
    let [key, hostile] = keys;
    let mut victim = Victim::prepare(daemon.address(), key)?;
    let attack = Attack::new(daemon.address(), hostile, victim.known());
    let (mut alone, mut beside) = (Latencies::default(), Latencies::default());
    let mut attacks = Tally::default();
    for number in 0..plan.phases {
        progress(number, plan.phases);
        alone.add(victim.work(plan.phase())?);
        let (latencies, tally) = beside_attack(&mut victim, &attack, plan, &hierarchy)?;
        beside.add(latencies);
        attacks.merge(tally);
    }
    #[expect(clippy::cast_precision_loss, reason = "a number of requests")]
    let attack_rate = attacks.total() as f64 / plan.attack.as_secs_f64();
    let losses = victim.losses()?;
    let untouched = untouched(&daemon, &attacks)?;
    daemon.stop()?;
    let findings = Findings { host, attack_rate, alone, beside, attacks, losses, untouched };
    let text = findings.render();
    std::io::stdout().write_all(text.as_bytes()).context("print the results")?;
    if let Some(results) = &plan.results {
        findings.record(&text, results)?;
    }
    let is_slow = plan.judges_latency && findings.ratio() > MAX_RATIO;
    Ok(ExitCode::from(u8::from(!findings.is_untouched() || is_slow)))
}

/// The victim's work while the attacker is at it.
fn beside_attack(
    victim: &mut Victim,
    attack: &Attack,
    plan: &Plan,
    hierarchy: &Hierarchy,
) -> anyhow::Result<(Vec<Duration>, Tally)> {
    let attacker = Attacker::start(hierarchy, attack, plan.clients)?;
    let latencies = victim.work(plan.phase())?;
    let tally = attacker.end()?;
    attack.cancel_all()?;
    Ok((latencies, tally))
}

/// Endpoints that the server describes and that were not attacked: an attack is missing here.
fn untouched(daemon: &Daemon, attacks: &Tally) -> anyhow::Result<Vec<String>> {
    let mut client = Client::connect(daemon.address())?;
    let answer = client.exchange(&request("GET", "/openapi.json", &[], b""))?;
    let document: Value = serde_json::from_slice(&answer.body).context("read /openapi.json")?;
    let paths = document["paths"].as_object().context("it has paths")?;
    let mut untouched = Vec::new();
    for (path, item) in paths {
        for method in item.as_object().context("it has operations")?.keys() {
            let endpoint = format!("{} {path}", method.to_ascii_uppercase());
            if !attacks.has(&endpoint) {
                untouched.push(endpoint);
            }
        }
    }
    Ok(untouched)
}

fn progress(phase: u32, phases: u32) {
    // Nobody needs to see it.
    let _ = writeln!(std::io::stderr(), "phase {} of {phases}: alone, then beside", phase + 1);
}

impl Latencies {
    fn add(&mut self, more: Vec<Duration>) {
        self.0.extend(more);
        self.0.sort_unstable();
    }

    fn quantile_ms(&self, percent: usize) -> f64 {
        let place = (self.0.len() * percent / 100).min(self.0.len().saturating_sub(1));
        self.0.get(place).copied().unwrap_or_default().as_secs_f64() * 1000.0
    }

    fn row(&self, name: &str) -> Vec<String> {
        let figures = [50, 95, 99].map(|percent| format!("{:.2}", self.quantile_ms(percent)));
        [vec![name.to_owned(), self.0.len().to_string()], figures.to_vec()].concat()
    }

    fn json(&self) -> Value {
        let [median, p95, p99] = [50, 95, 99].map(|percent| self.quantile_ms(percent));
        json!({ "requests": self.0.len(), "median_ms": median, "p95_ms": p95, "p99_ms": p99 })
    }
}

impl Findings {
    fn ratio(&self) -> f64 {
        self.beside.quantile_ms(95) / self.alone.quantile_ms(95).max(f64::MIN_POSITIVE)
    }

    fn is_untouched(&self) -> bool {
        self.losses.is_empty() && self.untouched.is_empty()
    }

    fn render(&self) -> String {
        let mut text = String::from("\nTwo keys of one sandboxd, one of them hostile\n\n");
        for line in self.host.lines() {
            let _ = writeln!(text, "{line}");
        }
        let heads = ["Python hello, ms", "requests", "median", "p95", "p99"];
        let rows = [self.alone.row("alone"), self.beside.row("beside the attacker")];
        let _ = writeln!(text, "\n{}", grid(&heads, rows));
        let rows = self.attacks.rows();
        let _ =
            writeln!(text, "\n{}", grid(&["attacks", "answered", "refused", "broken off"], rows));
        let _ = writeln!(
            text,
            "\n{:.0} attacks a second. The attacker's clients get the CPU time that the server and the victim leave: \
             their cost would be another machine's.",
            self.attack_rate
        );
        let _ = writeln!(
            text,
            "\np95 beside / alone: {:.2} (at most {MAX_RATIO} is promised)",
            self.ratio()
        );
        for loss in &self.losses {
            let _ = writeln!(text, "LOST: {loss}");
        }
        for endpoint in &self.untouched {
            let _ = writeln!(text, "NOT ATTACKED: {endpoint}");
        }
        if self.is_untouched() {
            text.push_str(
                "history, report, idempotency key, workspace, compile cache and quota: untouched\n",
            );
        }
        text
    }

    fn record(&self, text: &str, results: &Path) -> anyhow::Result<()> {
        std::fs::create_dir_all(results).context("make the directory for the results")?;
        let json = json!({
            "alone": self.alone.json(), "beside": self.beside.json(), "ratio": self.ratio(),
            "attacks_per_second": self.attack_rate,
            "losses": self.losses, "untouched": self.untouched,
        });
        std::fs::write(results.join("tenants.txt"), text).context("write tenants.txt")?;
        let json = serde_json::to_string_pretty(&json)? + "\n";
        std::fs::write(results.join("tenants.json"), json).context("write tenants.json")
    }
}
