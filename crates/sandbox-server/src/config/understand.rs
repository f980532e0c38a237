//! From texts to values.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sandbox::{AddressRange, ByteSize, Copies, Isolation, OciRuntime, parse_duration};
use sandbox_store::{Permission, Permissions, Retention};

use super::layers::Layer;
use super::{Config, ConfigError, LogFormat, Packages, tls};
use crate::policy::{Caps, NetworkPermission, SharedCaches};

pub(super) fn config(settled: &Layer) -> Result<Config, ConfigError> {
    settled.read("role", role)?;
    settled.read("queue", queue)?;
    let data_dir = settled.read("data_dir", data_dir)?;
    let max_body = settled.read("max_body", size)?;
    let memory_budget = settled.read("memory_budget", size)?;
    Ok(Config {
        listen: settled.read("listen", listen)?,
        database: settled.read("database", database)?.unwrap_or(data_dir.join("sandboxd.db")),
        data_dir,
        tls: tls::files(settled)?,
        max_connections: settled.read("max_connections", places)?,
        header_timeout: settled.read("header_timeout", duration)?,
        body_timeout: settled.read("body_timeout", duration)?,
        idle_timeout: settled.read("idle_timeout", duration)?,
        write_timeout: settled.read("write_timeout", duration)?,
        max_body,
        max_code: settled.read("max_code", size)?,
        caps: Caps {
            timeout: settled.read("max_timeout", duration)?,
            memory: settled.read("max_memory", |text| most_memory(text, memory_budget))?,
            disk: settled.read("max_disk", size)?,
            output: settled.read("max_output", size)?,
            pids: settled.read("max_pids", number)?,
        },
        concurrency: settled.read("concurrency", number)?,
        memory_budget,
        share_per_key: settled.read("share_per_key", percentage)?,
        queue_bound: settled.read("queue_bound", number)?,
        queue_memory: settled.read("queue_memory", |text| waiting(text, max_body))?,
        queue_memory_per_key: settled
            .read("queue_memory_per_key", |text| waiting(text, max_body))?,
        quota_per_key: settled.read("quota_per_key", number)?,
        workspace_size: settled.read("workspace_size", size)?,
        workspaces_per_key: settled.read("workspaces_per_key", number)?,
        isolations: settled.read("isolations", Isolation::parse_list)?,
        docker_host: settled.read("docker_host", docker_host)?,
        docker_runtime: settled.read("docker_runtime", docker_runtime)?,
        oci_runtime: settled.read("oci_runtime", oci_runtime)?,
        isolation_order: settled.read("isolation_order", Isolation::parse_list)?,
        packages: settled.read("packages", packages)?,
        shared_caches: SharedCaches {
            compiled: settled.read("shared_compile_cache", switch)?,
            packages: settled.read("shared_packages", switch)?,
        },
        key_permissions: settled.read("key_permissions", permissions)?,
        local_permissions: settled.read("local_permissions", permissions)?,
        environments_per_key: settled.read("environments_per_key", number)?,
        requests_per_minute: settled.read("requests_per_minute", number_or_zero)?,
        burst: settled.read("burst", number)?,
        limit_local: settled.read("limit_local", switch)?,
        warm: settled.read("warm", switch)?,
        warm_copies: settled.read("warm_copies", copies)?,
        wait_limit: settled.read("wait_limit", duration)?,
        retention: Retention {
            age: settled.read("retention_age", duration)?,
            bytes: settled.read("retention_size", size)?.as_u64(),
            bytes_per_owner: settled.read("retention_size_per_key", size)?.as_u64(),
            executions_per_owner: settled.read("retention_count_per_key", number)?,
            audit: settled.read("audit_retention", duration)?,
            audit_entries: settled.read("audit_entries", number)?,
        },
        cors_origins: settled.read("cors_origins", origins)?,
        network: NetworkPermission {
            allowlist: settled.read("network_allowlist", switch)?,
            ranges: settled.read("network_allow", ranges)?,
        },
        callback_allow: settled.read("callback_allow", str::parse)?,
        log: settled.read("log", log_format)?,
        log_filter: settled.read("log_filter", log_filter)?,
        otlp_endpoint: settled.read("otlp_endpoint", otlp_endpoint)?,
        otlp_sample: settled.read("otlp_sample", share)?,
        shutdown_deadline: settled.read("shutdown_deadline", duration)?,
    })
}

fn role(text: &str) -> Result<(), String> {
    match text {
        "all" => Ok(()),
        "api" | "worker" => Err(format!(
            "the role '{text}' is not in this build: one process serves and works, which is 'all'"
        )),
        _ => Err(format!("'{text}' is not a role: this build has 'all'")),
    }
}

fn queue(text: &str) -> Result<(), String> {
    match text {
        "embedded" => Ok(()),
        _ => Err(format!("'{text}' is not a queue of this build: it has 'embedded'")),
    }
}

/// The file, where it is not the usual one in the data directory.
fn database(text: &str) -> Result<Option<PathBuf>, String> {
    match text.strip_prefix("sqlite:") {
        None if text == "embedded" => Ok(None),
        Some(path) if path.starts_with('/') => Ok(Some(PathBuf::from(path))),
        _ => Err("takes 'embedded', or 'sqlite:' and the absolute path of a file".to_owned()),
    }
}

fn data_dir(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("is empty".to_owned());
    }
    // A path that depends on where the server was started would be another one after a restart.
    std::path::absolute(text).map_err(|error| format!("cannot tell where '{text}' is: {error}"))
}

fn listen(text: &str) -> Result<SocketAddr, String> {
    let invalid =
        |_| format!("'{text}' is not an address and port, such as 127.0.0.1:8080 or [::1]:8080");
    text.parse().map_err(invalid)
}

fn size(text: &str) -> Result<ByteSize, String> {
    let size: ByteSize = text.parse().map_err(|error: sandbox::InvalidSize| error.to_string())?;
    if size.as_u64() == 0 { Err("must be more than 0".to_owned()) } else { Ok(size) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let duration = parse_duration(text).map_err(|error| error.to_string())?;
    if duration.is_zero() { Err("must be more than 0".to_owned()) } else { Ok(duration) }
}

fn number<T: FromStr + PartialEq + Default>(text: &str) -> Result<T, String> {
    match text.parse() {
        Ok(number) if number != T::default() => Ok(number),
        _ => Err(format!("'{text}' is not a whole number from 1")),
    }
}

fn percentage(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(percentage) if (1..=100).contains(&percentage) => Ok(percentage),
        _ => Err(format!("'{text}' is not a percentage from 1 to 100")),
    }
}

fn places(text: &str) -> Result<usize, String> {
    let places = number(text)?;
    let most = tokio::sync::Semaphore::MAX_PERMITS;
    if places > most { Err(format!("must be at most {most}")) } else { Ok(places) }
}

/// Room for requests that wait. One that is as large as may be is held twice until it is stored, and always
/// fits.
fn waiting(text: &str, max_body: ByteSize) -> Result<ByteSize, String> {
    let least = ByteSize::bytes(max_body.as_u64().saturating_mul(2));
    size(text).map(|room| room.max(least))
}

/// Zero means that there is no limit, and only one setting has it.
fn number_or_zero(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("'{text}' is not a whole number; 0 means no limit"))
}

/// What one execution may have: all that executions have together, if nobody says less.
fn most_memory(text: &str, budget: ByteSize) -> Result<ByteSize, String> {
    match text {
        "memory_budget" => Ok(budget),
        _ => size(text).map_err(|reason| format!("{reason}, or 'memory_budget'")),
    }
}

/// Origins as browsers send them, or `*` for all.
fn origins(text: &str) -> Result<Vec<String>, String> {
    let origins = text.split(',').map(str::trim).filter(|origin| !origin.is_empty());
    let check = |origin: &str| {
        let (_, host) = origin.split_once("://").unwrap_or_default();
        let is_origin = origin.starts_with("http://") || origin.starts_with("https://");
        if origin == "*" || (is_origin && !host.is_empty() && !host.contains('/')) {
            Ok(origin.to_owned())
        } else {
            Err(format!("'{origin}' is not an origin, such as https://example.org"))
        }
    };
    origins.map(check).collect()
}

/// Where the Docker Engine is, if not at its usual place.
fn docker_host(text: &str) -> Result<Option<String>, String> {
    match text {
        "" => Ok(None),
        host if host.starts_with("unix:///") => Ok(Some(host.to_owned())),
        _ => Err("it is the Engine's socket on this host: unix:///PATH".to_owned()),
    }
}

/// The Engine knows which ones it has.
#[expect(clippy::unnecessary_wraps, reason = "every setting is read by a function that may refuse")]
fn docker_runtime(text: &str) -> Result<Option<String>, String> {
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn oci_runtime(text: &str) -> Result<Option<OciRuntime>, String> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}

fn packages(text: &str) -> Result<Packages, String> {
    Ok(if switch(text)? { Packages::On } else { Packages::Off })
}

fn permissions(text: &str) -> Result<Permissions, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let parse = |name: &str| {
        Permission::from_name(name).ok_or_else(|| {
            let all = Permission::join(&Permission::ALL.into());
            format!("'{name}' is not a permission: {all}")
        })
    };
    names.map(parse).collect()
}

fn ranges(text: &str) -> Result<Vec<AddressRange>, String> {
    let ranges = text.split(',').map(str::trim).filter(|range| !range.is_empty());
    ranges.map(str::parse).collect()
}

fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("'{text}' is neither 'on' nor 'off'")),
    }
}

fn copies(text: &str) -> Result<Copies, String> {
    match text {
        "never" => Ok(Copies::Never),
        "hurry" => Ok(Copies::InAHurry),
        "always" => Ok(Copies::Always),
        _ => Err(format!("'{text}' is none of 'never', 'hurry' and 'always'")),
    }
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "pretty" => Ok(LogFormat::Pretty),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("'{text}' is neither 'pretty' nor 'json'")),
    }
}

fn log_filter(text: &str) -> Result<String, String> {
    match tracing_subscriber::EnvFilter::builder().parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("'{text}' is not a filter, such as info or debug: {error}")),
    }
}

/// The path of traces below the address of a collector.
const TRACES: &str = "/v1/traces";

/// The whole address that traces are sent to. Collectors are named by where they listen, as in
/// `http://localhost:4318`; the path is always the same, and may be there already.
fn otlp_endpoint(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let base = text.strip_suffix(TRACES).unwrap_or(text).trim_end_matches('/');
    let is_sound = reqwest::Url::parse(base).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            // The address is printed and logged, which a password should not be.
            && url.username().is_empty()
            && url.password().is_none()
    });
    if is_sound {
        return Ok(Some(format!("{base}{TRACES}")));
    }
    Err("takes the address of a collector, such as http://localhost:4318, without a name, a \
         password or a query; a token goes into OTEL_EXPORTER_OTLP_HEADERS"
        .to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!("'{text}' is not a number from 0 to 1, such as 1 for all or 0.1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collector_is_named_with_or_without_the_path_of_traces() {
        let traces = |base: &str| Ok(Some(format!("{base}/v1/traces")));
        assert_eq!(otlp_endpoint(""), Ok(None));
        assert_eq!(otlp_endpoint("http://localhost:4318"), traces("http://localhost:4318"));
        assert_eq!(otlp_endpoint("http://localhost:4318/"), traces("http://localhost:4318"));
        assert_eq!(otlp_endpoint("https://c.example/o/v1/traces"), traces("https://c.example/o"));
        for wrong in [
            "localhost:4318",
            "grpc://localhost",
            "http://",
            "http://c/?a=b",
            "x",
            "http://n:secret@c",
        ] {
            let reason = otlp_endpoint(wrong).expect_err(wrong);
            assert!(!reason.contains("secret"), "{reason}");
        }
    }

    #[test]
    fn a_share_is_a_number_from_0_to_1() {
        assert_eq!([share("0"), share("1"), share("0.25")], [Ok(0.0), Ok(1.0), Ok(0.25)]);
        for wrong in ["-0.1", "1.1", "NaN", "10%", ""] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
