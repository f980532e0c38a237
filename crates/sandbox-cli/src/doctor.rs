//! `sandbox-run doctor`: what this host can enforce, what it cannot, and what to do about it.

mod attack;
mod host;
mod isolation;

use std::fmt::Write as _;
use std::io::{self, Write};

use sandbox::{ByteSize, Capabilities, Protection, Sandbox, TogetherLimits};
use serde::Serialize;

use crate::answer::as_json;
use crate::args::DoctorArgs;
use crate::errors::{Failure, printable};
use crate::output::Paint;

use host::Host;
use isolation::Backends;

/// Everything that was found.
#[derive(Debug, Serialize)]
struct Findings {
    /// Whether nothing is missing.
    ok: bool,
    #[serde(flatten)]
    host: Host,
    /// Why no sandbox of our own can be started at all, if so.
    error: Option<String>,
    /// What all sandboxes of one process may use together.
    together: Option<TogetherLimits>,
    /// What our own walls can enforce.
    protections: Vec<Finding>,
    #[serde(flatten)]
    backends: Backends,
}

/// One protection.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    name: Protection,
    enforceable: bool,
    reason: Option<String>,
    remedy: Option<String>,
}

pub(crate) fn examine(args: &DoctorArgs) -> Result<u8, Failure> {
    if args.attack {
        return attack::try_all(args.json);
    }
    let host = Host::look();
    let found = args.order.set_up(Sandbox::builder()).isolations();
    let backends = Backends::of(&found, args.order.order());
    let findings = match Sandbox::new() {
        Ok(sandbox) => findings(host, backends, sandbox.capabilities(), None),
        Err(error) => {
            let error = Failure::ours(&error).to_string();
            findings(host, backends, &Capabilities::default(), Some(error))
        }
    };
    let stdout = io::stdout();
    let text = if args.json {
        as_json(&findings)?
    } else {
        describe(&findings, Paint::for_stream(&stdout))
    };
    let printed = stdout.lock().write_all(text.as_bytes());
    printed.map_err(|error| Failure::printing(&error))?;
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
        together: capabilities.together,
        protections,
        backends,
    }
}

/// The line about the cgroup around all sandboxes.
fn together_in_words(limits: Option<TogetherLimits>) -> String {
    let Some(TogetherLimits { memory_bytes, pids }) = limits else {
        return "nothing bounds all sandboxes together".to_owned();
    };
    let memory = ByteSize::mib(memory_bytes >> 20);
    format!("all sandboxes of one process: {memory} of memory, {pids} processes")
}

fn describe(findings: &Findings, paint: Paint) -> String {
    let mut text = String::new();
    let host = &findings.host;
    let facts = [
        ("kernel", format!("{} ({})", host.kernel, host.architecture)),
        ("user", host.user_in_words()),
        ("cgroups", host.cgroups.in_words().to_owned()),
        ("together", together_in_words(findings.together)),
    ];
    for (name, fact) in facts {
        let _ = writeln!(text, "{} {}", paint.bold(&format!("{name:<8}")), printable(&fact));
    }
    text.push('\n');
    if let Some(error) = findings.error.as_deref().map(printable) {
        let _ =
            writeln!(text, "{}\n  {error}", paint.bad("✗ no native sandbox can be started here"));
        findings.backends.describe(&mut text, paint);
        return text;
    }
    for finding in &findings.protections {
        if finding.enforceable {
            let _ = writeln!(text, "{} {}", paint.good("✓"), finding.name);
            continue;
        }
        let reason = finding.reason.as_deref().unwrap_or("the backend does not offer it");
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
        paint.good("everything can be enforced here")
    } else {
        paint.warning(&format!(
            "{missing} of {} cannot be enforced here",
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
        Backends::of(&[], &[])
    }

    fn all_but(missing: Vec<MissingProtection>) -> Capabilities {
        let stands = |protection: &&Protection| {
            !missing.iter().any(|missing| missing.protection == **protection)
        };
        Capabilities {
            enforceable: Protection::ALL.iter().filter(stands).copied().collect(),
            missing,
            together: Some(TogetherLimits { memory_bytes: 8 << 30, pids: 30_000 }),
        }
    }

    #[test]
    fn a_host_that_gives_everything_is_ok() {
        let findings = findings(host(), backends(), &all_but(Vec::new()), None);
        assert!(findings.ok);
        let text = describe(&findings, Paint::none());
        assert!(text.contains("✓ seccomp") && !text.contains('✗'), "{text}");
        assert!(text.contains("8G of memory, 30000 processes"), "{text}");
    }

    #[test]
    fn what_is_missing_comes_with_reason_and_remedy() {
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
    fn a_host_without_sandboxes_is_told_as_such() {
        let findings =
            findings(host(), backends(), &Capabilities::default(), Some("no namespaces".into()));
        assert!(!findings.ok);
        assert!(describe(&findings, Paint::none()).contains("no namespaces"));
    }
}
