//! The results: text for people, JSON for machines.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::many_clients::ManyClients;
use super::single_client::{SingleClient, Way};
use super::{Findings, MAX_ADDED, MIN_SHARE, PROMISED_CLIENTS};
use crate::measure::ratio;
use crate::rounds::Round;
use crate::table::{figures, grid, micros, millis, rounded, summary_json};

pub(super) fn render(findings: &Findings) -> String {
    let host = findings.host.text();
    let mut text = format!("A Python hello through the library and over HTTP\n\n{host}");
    let _ = writeln!(text, "{} programs at once, in both", findings.concurrency);
    text.push_str(&single_client(
        "One client, each request after 50 ms of idleness",
        &findings.spaced,
    ));
    text.push_str(&single_client("One client, in turns of 20 requests", &findings.in_turns));
    text.push_str(&single_client("One client, request by request", &findings.alternating));
    text.push_str(&many_clients(&findings.many_clients));
    text.push_str(
        "\nWhat a row contains\n\
         \x20 library: Sandbox::execute in this process, with its usual spare slots\n\
         \x20 HTTP: POST /api/v1/execute on a connection that is kept, to a sandboxd of the same build with its\n\
         \x20   store on disk; every answer is checked\n\
         \x20 health: GET /api/v1/health by the same client, which is the client's own cost and more\n\
         \x20 library/s has as many threads as the server has workers, and no more than there are clients\n",
    );
    text.push_str(&verdict(findings));
    text
}

fn single_client(heading: &str, client: &SingleClient) -> String {
    let heads = [
        "ms", "runs", "median", "p95", "p99", "queue", "prepare", "run", "collect", "the rest",
        "warm",
    ];
    let row = |name: &str, way: &Way| {
        let summary = way.total.summary();
        let parts = [
            way.median_of(|timings| timings.queue),
            way.median_of(|timings| timings.prepare),
            way.median_of(|timings| timings.run),
            way.median_of(|timings| timings.collect),
        ];
        let rest = summary.median.as_secs_f64() * 1e3 - parts.iter().sum::<f64>();
        let mut row = vec![name.to_owned()];
        row.extend(figures(summary));
        row.extend(parts.iter().chain([&rest]).map(|part| format!("{part:.3}")));
        row.push(format!("{} %", way.warm_share()));
        row
    };
    let mut health = vec!["health".to_owned()];
    health.extend(figures(client.health.summary()));
    let rows = [row("library", &client.library), row("HTTP", &client.server), health];
    let pair = client.added_by_pair();
    format!(
        "\n{heading}{}\n{}\n\
         \x20 HTTP adds {} ms to the median, which is {:.3} times the library's\n\
         \x20 pair by pair it adds {:.3} ± {:.3} ms (median, with its standard error)\n",
        if client.library.total.summary().is_noisy() { " (noisy)" } else { "" },
        grid(&heads, rows),
        millis(client.added()),
        times(client),
        pair.micros / 1e3,
        pair.uncertainty / 1e3,
    )
}

fn times(client: &SingleClient) -> f64 {
    ratio(client.server.total.summary().median, client.library.total.summary().median)
}

fn many_clients(rows: &[ManyClients]) -> String {
    let heads = [
        "clients",
        "answers",
        "median ms",
        "p95 ms",
        "p99 ms",
        "errors",
        "HTTP/s",
        "library/s",
        "share",
        "by round",
        "health/s",
    ];
    let table = rows.iter().map(|clients| {
        let mut row = vec![clients.clients.to_string()];
        row.extend(figures(Round::summary_of(&clients.server)));
        row.push(clients.errors().to_string());
        let (server, library) =
            (Round::per_second_of(&clients.server), Round::per_second_of(&clients.library));
        row.extend([
            format!("{server:.1}"),
            format!("{library:.1} ({} threads)", clients.threads),
            format!("{:.3}", server / library),
            format!("{:.3}", clients.share_by_round()),
            format!("{:.0}", clients.health.per_second()),
        ]);
        row
    });
    let mut text = format!("\nMany clients, rounds in turns\n{}\n", grid(&heads, table));
    for row in rows {
        if let Some(error) = row.error() {
            let _ = writeln!(text, "  with {} clients, one of the errors: {error}", row.clients);
        }
    }
    text
}

fn verdict(findings: &Findings) -> String {
    let word = |holds: bool| if holds { "holds" } else { "does NOT hold" };
    let mut text = format!(
        "\nAt most {} ms added to the median of a warm Python hello (each after 50 ms of idleness): {}\n\
         \x20 without pauses, when starting runtimes takes most of the processors, it adds {} ms: not judged\n",
        millis(MAX_ADDED),
        word(findings.holds_added()),
        millis(findings.in_turns.added()),
    );
    if let Some(holds) = findings.holds_share() {
        let _ = writeln!(
            text,
            "At least {MIN_SHARE} of the library's executions in a second with {PROMISED_CLIENTS} clients \
             (by round): {}",
            word(holds)
        );
    }
    text
}

pub(super) fn to_json(findings: &Findings) -> Value {
    json!({
        "benchmark": "load",
        "host": findings.host.to_json(),
        "concurrency": findings.concurrency,
        "spaced": single_client_json(&findings.spaced),
        "in_turns": single_client_json(&findings.in_turns),
        "request_by_request": single_client_json(&findings.alternating),
        "added_holds": findings.holds_added(),
        "crowds": findings.many_clients.iter().map(many_clients_json).collect::<Vec<_>>(),
        "share_holds": findings.holds_share(),
    })
}

fn single_client_json(client: &SingleClient) -> Value {
    let pair = client.added_by_pair();
    json!({
        "library": summary_json(client.library.total.summary()),
        "http": summary_json(client.server.total.summary()),
        "health": summary_json(client.health.summary()),
        "added_us": micros(client.added()),
        "added_by_pair_us": rounded(pair.micros),
        "added_by_pair_uncertainty_us": rounded(pair.uncertainty),
        "ratio": rounded(times(client)),
        "warm_percent": [client.library.warm_share(), client.server.warm_share()],
    })
}

fn many_clients_json(row: &ManyClients) -> Value {
    json!({
        "clients": row.clients,
        "library_threads": row.threads,
        "http": summary_json(Round::summary_of(&row.server)),
        "errors": row.errors(),
        "http_per_second": rounded(Round::per_second_of(&row.server)),
        "library_per_second": rounded(Round::per_second_of(&row.library)),
        "share_by_round": rounded(row.share_by_round()),
        "health_per_second": rounded(row.health.per_second()),
    })
}
