//! What comes in and goes out through an allow-list, against real servers in a network that each test makes for itself.

mod allowed;
mod clients;
mod many;
mod refused;
mod servers;

use sandbox::{
    Allowlist, ConnectionRecord, Decision, NetworkReport, Report, Request, RequestBuilder, Sandbox,
};
use sandbox_tests::backend::show;

/// These rules.
fn allow(rules: &[&str]) -> Allowlist {
    let rules = rules.iter().map(|rule| rule.parse().expect("it is a rule")).collect();
    Allowlist::new(rules, false).expect("there are not too many")
}

fn python(code: &str, allowlist: Allowlist) -> RequestBuilder {
    Request::builder("python").code(code).allow(allowlist)
}

fn execute(sandbox: &Sandbox, request: RequestBuilder) -> Report {
    let report = sandbox.execute(request.build().expect("it is a request")).expect("it is taken");
    show(&report);
    report
}

fn network(report: &Report) -> &NetworkReport {
    report.network.as_ref().expect("there was a network")
}

/// Connections to a place that ended so.
fn records<'a>(
    report: &'a Report,
    host: &'a str,
    port: u16,
    decision: Decision,
) -> impl Iterator<Item = &'a ConnectionRecord> {
    network(report).connections.iter().filter(move |record| {
        record.host == host && record.port == port && record.decision == decision
    })
}

fn has_record(report: &Report, host: &str, port: u16, decision: Decision) -> bool {
    records(report, host, port, decision).next().is_some()
}
