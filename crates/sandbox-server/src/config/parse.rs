//! Parses the values of all settings.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sandbox::{AddressRange, ByteSize, ForkPolicy, Isolation, OciRuntime, parse_duration};
use sandbox_store::{Permission, Permissions, Retention};

use super::layers::Layer;
use super::{Config, ConfigError, LogFormat, Packages, TlsFiles};
use crate::policy::{Caps, NetworkPermission, SharedCaches};

pub(super) fn config(values: &Layer) -> Result<Config, ConfigError> {
    values.parse("role", role)?;
    values.parse("queue", queue)?;
    let data_dir = values.parse("data_dir", data_dir)?;
    let socket = values.parse("socket", path)?;
    let max_body = values.parse("max_body", size)?;
    let memory_budget = values.parse("memory_budget", size)?;
    Ok(Config {
        listen: values.parse("listen", |text| listen(text, socket.is_some()))?,
        socket,
        idle_exit: values.parse("idle_exit", idle_exit)?,
        database: values.parse("database", database)?.unwrap_or(data_dir.join("sandboxd.db")),
        data_dir,
        tls: tls_files(values)?,
        max_connections: values.parse("max_connections", connections)?,
        header_timeout: values.parse("header_timeout", duration)?,
        body_timeout: values.parse("body_timeout", duration)?,
        idle_timeout: values.parse("idle_timeout", duration)?,
        write_timeout: values.parse("write_timeout", duration)?,
        max_body,
        max_code: values.parse("max_code", size)?,
        caps: Caps {
            timeout: values.parse("max_timeout", duration)?,
            memory: values.parse("max_memory", |text| max_memory(text, memory_budget))?,
            disk: values.parse("max_disk", size)?,
            output: values.parse("max_output", size)?,
            pids: values.parse("max_pids", number)?,
            open_files: values.parse("max_open_files", number)?,
        },
        concurrency: values.parse("concurrency", number)?,
        memory_budget,
        share_per_key: values.parse("share_per_key", percentage)?,
        queue_bound: values.parse("queue_bound", number)?,
        queue_memory: values.parse("queue_memory", |text| queue_memory(text, max_body))?,
        queue_memory_per_key: values
            .parse("queue_memory_per_key", |text| queue_memory(text, max_body))?,
        quota_per_key: values.parse("quota_per_key", number)?,
        workspace_size: values.parse("workspace_size", size)?,
        workspaces_per_key: values.parse("workspaces_per_key", number)?,
        isolations: values.parse("isolations", Isolation::parse_list)?,
        docker_host: values.parse("docker_host", docker_host)?,
        docker_runtime: values.parse("docker_runtime", docker_runtime)?,
        oci_runtime: values.parse("oci_runtime", oci_runtime)?,
        isolation_order: values.parse("isolation_order", Isolation::parse_list)?,
        packages: values.parse("packages", packages)?,
        shared_caches: SharedCaches {
            compiled: values.parse("shared_compile_cache", on_off)?,
            packages: values.parse("shared_packages", on_off)?,
        },
        key_permissions: values.parse("key_permissions", permissions)?,
        local_permissions: values.parse("local_permissions", permissions)?,
        environments_per_key: values.parse("environments_per_key", number)?,
        requests_per_minute: values.parse("requests_per_minute", number_or_zero)?,
        burst: values.parse("burst", number)?,
        limit_local: values.parse("limit_local", on_off)?,
        warm: values.parse("warm", on_off)?,
        warm_copies: values.parse("warm_copies", fork_policy)?,
        wait_limit: values.parse("wait_limit", duration)?,
        retention: Retention {
            age: values.parse("retention_age", duration)?,
            bytes: values.parse("retention_size", size)?.as_u64(),
            bytes_per_owner: values.parse("retention_size_per_key", size)?.as_u64(),
            executions_per_owner: values.parse("retention_count_per_key", number)?,
            audit: values.parse("audit_retention", duration)?,
            audit_entries: values.parse("audit_entries", number)?,
        },
        cors_origins: values.parse("cors_origins", origins)?,
        network: NetworkPermission {
            allowlist: values.parse("network_allowlist", on_off)?,
            ranges: values.parse("network_allow", ranges)?,
        },
        volumes_from: values.parse("volumes_from", directories)?,
        callback_allow: values.parse("callback_allow", str::parse)?,
        log: values.parse("log", log_format)?,
        log_filter: values.parse("log_filter", log_filter)?,
        otlp_endpoint: values.parse("otlp_endpoint", otlp_endpoint)?,
        otlp_sample: values.parse("otlp_sample", fraction)?,
        shutdown_deadline: values.parse("shutdown_deadline", duration)?,
    })
}

/// The certificate and its key: both or none.
fn tls_files(values: &Layer) -> Result<Option<TlsFiles>, ConfigError> {
    let certificate = values.parse("tls_cert", path)?;
    let key = values.parse("tls_key", path)?;
    let alone = |other| move |_: &str| Err(format!("requires {other}, which is not set"));
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (Some(_), None) => values.parse("tls_cert", alone("tls_key")),
        (None, Some(_)) => values.parse("tls_key", alone("tls_cert")),
    }
}

fn path(text: &str) -> Result<Option<PathBuf>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let absolute = std::path::absolute(text);
    absolute.map(Some).map_err(|error| format!("cannot resolve '{text}': {error}"))
}

fn role(text: &str) -> Result<(), String> {
    match text {
        "all" => Ok(()),
        "api" | "worker" => {
            Err(format!("the role '{text}' is not supported by this build: use 'all'"))
        }
        _ => Err(format!("unknown role '{text}': this build supports 'all'")),
    }
}

fn queue(text: &str) -> Result<(), String> {
    match text {
        "embedded" => Ok(()),
        _ => Err(format!("unknown queue '{text}': this build supports 'embedded'")),
    }
}

/// The path of the database, unless it is the default one in the data directory.
fn database(text: &str) -> Result<Option<PathBuf>, String> {
    match text.strip_prefix("sqlite:") {
        None if text == "embedded" => Ok(None),
        Some(path) if path.starts_with('/') => Ok(Some(PathBuf::from(path))),
        _ => Err("must be 'embedded' or 'sqlite:' and an absolute path".to_owned()),
    }
}

fn data_dir(text: &str) -> Result<PathBuf, String> {
    if text.is_empty() {
        return Err("must not be empty".to_owned());
    }
    // A relative path would depend on the directory in which the server starts.
    std::path::absolute(text).map_err(|error| format!("cannot resolve '{text}': {error}"))
}

fn listen(text: &str, has_socket: bool) -> Result<Option<SocketAddr>, String> {
    match text {
        "off" if has_socket => Ok(None),
        "off" => Err("'off' requires socket, which is not set".to_owned()),
        _ => text.parse().map(Some).map_err(|_| {
            format!("'{text}' is not an address and port, such as 127.0.0.1:8080 or [::1]:8080")
        }),
    }
}

fn idle_exit(text: &str) -> Result<Option<Duration>, String> {
    if text == "off" { Ok(None) } else { duration(text).map(Some) }
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
        _ => Err(format!("'{text}' is not a positive integer")),
    }
}

fn percentage(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(percentage) if (1..=100).contains(&percentage) => Ok(percentage),
        _ => Err(format!("'{text}' is not a percentage from 1 to 100")),
    }
}

fn connections(text: &str) -> Result<usize, String> {
    let connections = number(text)?;
    let max = tokio::sync::Semaphore::MAX_PERMITS;
    if connections > max { Err(format!("must be at most {max}")) } else { Ok(connections) }
}

/// The memory for queued requests, at least twice the largest body: a request is in memory twice until it is saved, and
/// the largest one must fit.
fn queue_memory(text: &str, max_body: ByteSize) -> Result<ByteSize, String> {
    let min = ByteSize::bytes(max_body.as_u64().saturating_mul(2));
    size(text).map(|size| size.max(min))
}

/// Zero means no limit.
fn number_or_zero(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("'{text}' is not a non-negative integer; 0 means no limit"))
}

/// The maximum memory limit of one execution. Default: the memory budget of all executions together.
fn max_memory(text: &str, budget: ByteSize) -> Result<ByteSize, String> {
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

/// The socket of the Docker Engine, unless it is the default one.
fn docker_host(text: &str) -> Result<Option<String>, String> {
    match text {
        "" => Ok(None),
        host if host.starts_with("unix:///") => Ok(Some(host.to_owned())),
        _ => Err("must be the Docker Engine's socket on this host: unix:///PATH".to_owned()),
    }
}

/// Not validated: the Engine knows its runtimes.
#[expect(clippy::unnecessary_wraps, reason = "the signature of all parsers")]
fn docker_runtime(text: &str) -> Result<Option<String>, String> {
    Ok((!text.is_empty()).then(|| text.to_owned()))
}

fn oci_runtime(text: &str) -> Result<Option<OciRuntime>, String> {
    if text.is_empty() { Ok(None) } else { text.parse().map(Some) }
}

fn packages(text: &str) -> Result<Packages, String> {
    Ok(if on_off(text)? { Packages::On } else { Packages::Off })
}

fn permissions(text: &str) -> Result<Permissions, String> {
    let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
    let parse = |name: &str| {
        Permission::from_name(name).ok_or_else(|| {
            let all = Permission::join(&Permission::ALL.into());
            format!("unknown permission '{name}': the permissions are {all}")
        })
    };
    names.map(parse).collect()
}

fn ranges(text: &str) -> Result<Vec<AddressRange>, String> {
    let ranges = text.split(',').map(str::trim).filter(|range| !range.is_empty());
    ranges.map(str::parse).collect()
}

fn directories(text: &str) -> Result<Vec<PathBuf>, String> {
    let paths = text.split(',').map(str::trim).filter(|path| !path.is_empty()).map(PathBuf::from);
    let check = |path: PathBuf| {
        let is_absolute = path.is_absolute();
        if is_absolute { Ok(path) } else { Err(format!("'{}' is not absolute", path.display())) }
    };
    paths.map(check).collect()
}

fn on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err(format!("'{text}' is not 'on' or 'off'")),
    }
}

fn fork_policy(text: &str) -> Result<ForkPolicy, String> {
    match text {
        "never" => Ok(ForkPolicy::Never),
        "hurry" => Ok(ForkPolicy::OnDemand),
        "always" => Ok(ForkPolicy::Always),
        _ => Err(format!("'{text}' is not 'never', 'hurry' or 'always'")),
    }
}

fn log_format(text: &str) -> Result<LogFormat, String> {
    match text {
        "pretty" => Ok(LogFormat::Pretty),
        "json" => Ok(LogFormat::Json),
        _ => Err(format!("'{text}' is not 'pretty' or 'json'")),
    }
}

fn log_filter(text: &str) -> Result<String, String> {
    match tracing_subscriber::EnvFilter::builder().parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(format!("'{text}' is not a log filter, such as info or debug: {error}")),
    }
}

/// The path of the traces endpoint of a collector.
const TRACES_PATH: &str = "/v1/traces";

/// The URL of the traces endpoint. The setting is the base URL of the collector, such as `http://localhost:4318`, with
/// or without the path.
fn otlp_endpoint(text: &str) -> Result<Option<String>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let base = text.strip_suffix(TRACES_PATH).unwrap_or(text).trim_end_matches('/');
    let is_valid = reqwest::Url::parse(base).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.has_host()
            && url.query().is_none()
            && url.fragment().is_none()
            // The URL is printed and logged, so it must not contain a password.
            && url.username().is_empty()
            && url.password().is_none()
    });
    if is_valid {
        return Ok(Some(format!("{base}{TRACES_PATH}")));
    }
    Err("must be the base URL of a collector, such as http://localhost:4318, without a user, a \
         password or a query; set a token in OTEL_EXPORTER_OTLP_HEADERS"
        .to_owned())
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(fraction) if (0.0..=1.0).contains(&fraction) => Ok(fraction),
        _ => Err(format!("'{text}' is not a number from 0 to 1, such as 1 for all or 0.1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_the_traces_endpoint_is_optional() {
        let endpoint = |base: &str| Ok(Some(format!("{base}/v1/traces")));
        assert_eq!(otlp_endpoint(""), Ok(None));
        assert_eq!(otlp_endpoint("http://localhost:4318"), endpoint("http://localhost:4318"));
        assert_eq!(otlp_endpoint("http://localhost:4318/"), endpoint("http://localhost:4318"));
        assert_eq!(otlp_endpoint("https://c.example/o/v1/traces"), endpoint("https://c.example/o"));
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
    fn a_fraction_is_a_number_from_0_to_1() {
        assert_eq!([fraction("0"), fraction("1"), fraction("0.25")], [Ok(0.0), Ok(1.0), Ok(0.25)]);
        for wrong in ["-0.1", "1.1", "NaN", "10%", ""] {
            assert!(fraction(wrong).is_err(), "{wrong}");
        }
    }
}
