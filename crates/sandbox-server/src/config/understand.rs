//! From texts to values.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use sandbox::{ByteSize, parse_duration};
use sandbox_store::Retention;

use super::layers::Layer;
use super::{Config, ConfigError, LogFormat};

pub(super) fn config(settled: &Layer) -> Result<Config, ConfigError> {
    settled.read("role", role)?;
    settled.read("queue", queue)?;
    let data_dir = settled.read("data_dir", data_dir)?;
    Ok(Config {
        listen: settled.read("listen", listen)?,
        database: settled.read("database", database)?.unwrap_or(data_dir.join("sandboxd.db")),
        data_dir,
        max_body: settled.read("max_body", size)?,
        max_code: settled.read("max_code", size)?,
        concurrency: settled.read("concurrency", number)?,
        memory_budget: settled.read("memory_budget", size)?,
        queue_bound: settled.read("queue_bound", number)?,
        quota_per_key: settled.read("quota_per_key", number)?,
        workspace_size: settled.read("workspace_size", size)?,
        workspaces_per_key: settled.read("workspaces_per_key", number)?,
        requests_per_minute: settled.read("requests_per_minute", number)?,
        burst: settled.read("burst", number)?,
        wait_limit: settled.read("wait_limit", duration)?,
        retention: Retention {
            age: settled.read("retention_age", duration)?,
            bytes: settled.read("retention_size", size)?.as_u64(),
        },
        cors_origins: settled.read("cors_origins", origins)?,
        log: settled.read("log", log_format)?,
        log_filter: settled.read("log_filter", log_filter)?,
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
