//! `sandbox-run doctor`: check which protections and backends work on this host, and how to enable the others.

mod attack;
mod backends;
mod host;

use std::fmt::Write as _;
use std::io;

use sandbox::{AggregateLimits, ByteSize, Capabilities, Protection, Sandbox};
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::errors::{Failure, printable};
use crate::output::Paint;
use crate::stdout::{print, to_json};

use backends::Backends;
use host::Host;

/// The result of all checks; the JSON output.
#[derive(Debug, Serialize)]
struct Findings {
    /// Whether every protection can be enforced.
    ok: bool,
    #[serde(flatten)]
    host: Host,
    /// Why no native sandbox can be started, if so.
    error: Option<String>,
    /// Limits on all sandboxes of one process together.
    together: Option<AggregateLimits>,
    /// The protections of the native backend.
    protections: Vec<Finding>,
    #[serde(flatten)]
    backends: Backends,
}

/// One protection: whether it can be enforced, else why not and how to enable it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    name: Protection,
    enforceable: bool,
    reason: Option<String>,
    remedy: Option<String>,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<u8, Failure> {
    if args.attack {
        return attack::run_all(args.json);
    }
    let host = Host::detect();
    let found = args.backend.apply(Sandbox::builder()).isolations();
    let backends = Backends::new(&found, args.backend.isolation_order());
    let findings = match Sandbox::new() {
        Ok(sandbox) => findings(host, backends, sandbox.capabilities(), None),
        Err(error) => {
            let error = Failure::internal(&error).to_string();
            findings(host, backends, &Capabilities::default(), Some(error))
        }
    };
    let text = if args.json {
        to_json(&findings)?
    } else {
        describe(&findings, Paint::for_stream(&io::stdout()))
    };
    print(&text)?;
    Ok(u8::from(!findings.ok))
}

fn findings(
    host: Host,
    backends: Backends,
    capabilities: &Capabilities,
    error: Option<String>,
) -> Findings {
    let finding = |protection: &Protection| {
        let mut missing = capabilities.missing.iter();
        let missing = missing.find(|missing| missing.protection == *protection);
        Finding {
            name: *protection,
            enforceable: missing.is_none() && capabilities.enforceable.contains(protection),
            reason: missing.map(|missing| missing.reason.clone()),
            remedy: missing.map(|missing| missing.remedy.clone()),
        }
    };
    let protections: Vec<_> = Protection::ALL.iter().map(finding).collect();
    Findings {
        ok: error.is_none() && protections.iter().all(|finding| finding.enforceable),
        host,
        error,
        together: capabilities.aggregate_limits,
        protections,
        backends,
    }
}

/// Describes the cgroup limits on all sandboxes of one process together.
fn describe_together(limits: Option<AggregateLimits>) -> String {
    let Some(AggregateLimits { memory_bytes, pids }) = limits else {
        return "none on all sandboxes together".to_owned();
    };
    let memory = ByteSize::mib(memory_bytes >> 20);
    format!("{memory} of memory, {pids} processes for all sandboxes of one process together")
}

fn describe(findings: &Findings, paint: Paint) -> String {
    let mut text = String::new();
    let host = &findings.host;
    let facts = [
        ("kernel", format!("{} ({})", host.kernel, host.architecture)),
        ("user", host.describe_user()),
        ("cgroups", host.cgroups.describe().to_owned()),
        ("limits", describe_together(findings.together)),
    ];
    for (name, fact) in facts {
        let _ = writeln!(text, "{} {}", paint.bold(&format!("{name:<8}")), printable(&fact));
    }
    text.push('\n');
    if let Some(error) = findings.error.as_deref().map(printable) {
        let _ = writeln!(text, "{}\n  {error}", paint.bad("✗ cannot start a native sandbox"));
        findings.backends.describe(&mut text, paint);
        return text;
    }
    for finding in &findings.protections {
        if finding.enforceable {
            let _ = writeln!(text, "{} {}", paint.good("✓"), finding.name);
            continue;
        }
        let reason = finding.reason.as_deref().unwrap_or("the native backend does not support it");
        let reason = printable(reason);
        let _ = writeln!(text, "{} {}: {reason}", paint.bad("✗"), finding.name);
        if let Some(remedy) = &finding.remedy {
            let _ = writeln!(text, "  {}", paint.dim(&format!("→ {}", printable(remedy))));
        }
    }
    findings.backends.describe(&mut text, paint);
    let missing = findings.protections.iter();
    let missing = missing.filter(|finding| !finding.enforceable).count();
    let verdict = if missing == 0 {
        paint.good("all protections can be enforced")
    } else {
        paint.warning(&format!(
            "{missing} of {} protections cannot be enforced",
            findings.protections.len()
        ))
    };
    let _ = writeln!(text, "\n{verdict}");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::MissingProtection;

    fn host() -> Host {
        Host {
            kernel: "6.18.0".into(),
            architecture: "x86_64".into(),
            uid: 1000,
            own_ids: false,
            cgroups: host::Cgroups::V2,
        }
    }

    fn backends() -> Backends {
        Backends::new(&[], &[])
    }

    fn all_but(missing: Vec<MissingProtection>) -> Capabilities {
        let is_enforced = |protection: &&Protection| {
            !missing.iter().any(|missing| missing.protection == **protection)
        };
        Capabilities {
            enforceable: Protection::ALL.iter().filter(is_enforced).copied().collect(),
            missing,
            features: std::collections::BTreeSet::new(),
            aggregate_limits: Some(AggregateLimits { memory_bytes: 8 << 30, pids: 30_000 }),
        }
    }

    #[test]
    fn a_host_with_all_protections_is_ok() {
        let findings = findings(host(), backends(), &all_but(Vec::new()), None);
        assert!(findings.ok);
        let text = describe(&findings, Paint::none());
        assert!(text.contains("✓ seccomp") && !text.contains('✗'), "{text}");
        assert!(text.contains("limits   8G of memory, 30000 processes"), "{text}");
    }

    #[test]
    fn a_missing_protection_has_a_reason_and_a_remedy() {
        let missing = MissingProtection {
            protection: Protection::Memory,
            reason: "no cgroup was delegated".into(),
            remedy: "run under systemd-run --user".into(),
        };
        let findings = findings(host(), backends(), &all_but(vec![missing]), None);
        assert!(!findings.ok);
        let text = describe(&findings, Paint::none());
        assert!(text.contains("✗ memory: no cgroup was delegated\n  → run under"), "{text}");
        assert!(text.contains("1 of "), "{text}");
        let json = serde_json::to_value(&findings).unwrap();
        assert_eq!(json["ok"], false);
        assert_eq!(json["kernel"], "6.18.0");
        let protections = json["protections"].as_array().unwrap();
        let memory = protections.iter().find(|entry| entry["name"] == "memory");
        assert_eq!(memory.unwrap()["remedy"], "run under systemd-run --user");
    }

    #[test]
    fn a_host_that_cannot_start_a_sandbox_is_reported() {
        let findings =
            findings(host(), backends(), &Capabilities::default(), Some("no namespaces".into()));
        assert!(!findings.ok);
        assert!(describe(&findings, Paint::none()).contains("no namespaces"));
    }
}
