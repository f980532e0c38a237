//! Translates a validated request to the HTTP API. Options that the API lacks are refused rather than ignored.

use std::time::Duration;

use sandbox::{ByteSize, Limits, NetworkPolicy, Protection, Request, Stdin, Volume, VolumeAccess};
use sandbox_api::{ExecuteRequest, FileInput, NetworkMode, NetworkRequest};
use sandbox_client::ServerUrl;

use crate::args::{IsolationChoice, RunArgs};
use crate::errors::Failure;

/// What to send for this request, which is what `args` asked for.
pub(super) fn translate(args: &RunArgs, request: &Request) -> Result<ExecuteRequest, Failure> {
    refuse_unsupported(args, request)?;
    let mut asked = ExecuteRequest {
        volumes: request.volumes().iter().map(volume).collect::<Result<_, _>>()?,
        language: request.language().name().to_owned(),
        version: request.language().version().map(ToOwned::to_owned),
        code: request.code().map(ToOwned::to_owned),
        files: request
            .files()
            .iter()
            .map(|file| FileInput::new(file.path.as_str(), file.contents.clone()))
            .collect(),
        stdin_stream: !matches!(request.stdin(), Stdin::Empty),
        args: request.args().to_vec(),
        env: request.env().clone(),
        network: network(request),
        isolation: match args.isolation {
            IsolationChoice::Auto => None,
            IsolationChoice::Named(isolation) => Some(isolation.to_string()),
        },
        workdir: request.workdir().map(|path| path.as_str().to_owned()),
        compile_cache: args.no_cache.then_some(false),
        collect: request.collect().iter().map(ToString::to_string).collect(),
        packages: request.packages().iter().map(ToString::to_string).collect(),
        host_packages: (!request.host_packages()).then_some(false),
        environment: request.environment().map(|name| name.as_str().to_owned()),
        workspace: request.workspace().map(ToString::to_string),
        allow_missing: request.allow_missing().iter().map(ToString::to_string).collect(),
        ..ExecuteRequest::default()
    };
    if let Some(interval) = request.usage_interval() {
        asked.usage_interval_ms = Some(millis(interval));
    }
    let compile = request.compile_limits();
    if compile.is_requested(Protection::WallTime) {
        asked.compile_timeout_ms = Some(millis(compile.wall_time()));
    }
    if compile.is_requested(Protection::Memory) {
        asked.compile_memory_mb = Some(units(compile.memory(), ByteSize::mib(1)));
    }
    run_limits(request.run_limits(), &mut asked);
    Ok(asked)
}

/// Only limits that were typed are sent: the others are the server's to choose.
fn run_limits(limits: &Limits, asked: &mut ExecuteRequest) {
    let typed = |protection| limits.is_requested(protection);
    if typed(Protection::WallTime) {
        asked.timeout_ms = Some(millis(limits.wall_time()));
    }
    if let Some(time) = limits.cpu_time() {
        asked.cpu_time_ms = Some(millis(time));
    }
    if typed(Protection::Memory) {
        asked.memory_limit_mb = Some(units(limits.memory(), ByteSize::mib(1)));
    }
    if typed(Protection::Cpu) {
        asked.cpus = Some(limits.cpus());
    }
    if typed(Protection::Pids) {
        asked.pids = Some(limits.pids());
    }
    if typed(Protection::Disk) {
        asked.disk_mb = Some(units(limits.disk(), ByteSize::mib(1)));
    }
    if typed(Protection::Output) {
        asked.output_limit_kb = Some(units(limits.output(), ByteSize::kib(1)));
    }
    if typed(Protection::OpenFiles) {
        asked.open_files = Some(limits.open_files());
    }
}

fn refuse_unsupported(args: &RunArgs, request: &Request) -> Result<(), Failure> {
    // The server of a socket is on this host.
    let is_remote = !args.server.server.as_ref().is_some_and(ServerUrl::is_socket);
    let has_volumes = !request.volumes().is_empty();
    for (flag, is_used, reason) in [
        ("--volume", has_volumes && is_remote, "it names a directory of this host"),
        ("--image", args.image.is_some(), "the server has its own images"),
    ] {
        if is_used {
            return Err(Failure::Usage(format!("{flag} cannot be used with --server: {reason}")));
        }
    }
    Ok(())
}

fn volume(volume: &Volume) -> Result<String, Failure> {
    let (host, inside) = (volume.host().to_str(), volume.destination().to_str());
    let (Some(host), Some(inside)) = (host, inside) else {
        return Err(Failure::Usage("--volume paths must be UTF-8 with --server".to_owned()));
    };
    let access = if volume.access() == VolumeAccess::ReadWrite { ":rw" } else { "" };
    Ok(format!("{host}:{inside}{access}"))
}

fn network(request: &Request) -> Option<NetworkRequest> {
    let mode = match request.network() {
        NetworkPolicy::Localhost => NetworkMode::Localhost,
        NetworkPolicy::Allowlist => NetworkMode::Allowlist,
        _ => return None,
    };
    let allow = request.allow();
    let rules = allow.map(|allow| allow.rules().iter().map(ToString::to_string).collect());
    let dns = allow.is_some_and(|allow| allow.looks_up_any_name());
    Some(NetworkRequest { mode, allow: rules.unwrap_or_default(), dns })
}

fn millis(time: Duration) -> f64 {
    time.div_duration_f64(Duration::from_millis(1))
}

#[expect(clippy::cast_precision_loss, reason = "no limit comes near 2^52 bytes")]
fn units(size: ByteSize, unit: ByteSize) -> f64 {
    size.as_u64() as f64 / unit.as_u64() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox::RequestBuilder;
    use serde_json::json;

    fn translated(
        line: &[&str],
        change: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<serde_json::Value, String> {
        let request = change(Request::builder("py@3.11")).build().unwrap();
        let asked = translate(&RunArgs::from_line(line), &request);
        asked
            .map(|asked| serde_json::to_value(asked).unwrap())
            .map_err(|failure| failure.message().unwrap())
    }

    #[test]
    fn only_given_options_are_sent() {
        let plain = translated(&[], |builder| builder.code("1")).unwrap();
        assert_eq!(plain, json!({"language": "py", "version": "3.11", "code": "1"}));
    }

    #[test]
    fn every_given_option_is_sent() {
        let limits = Limits::run()
            .with_wall_time(Duration::from_millis(1500))
            .and_then(|limits| limits.with_cpu_time(Duration::from_secs(1)))
            .and_then(|limits| limits.with_memory(ByteSize::mib(64)))
            .and_then(|limits| limits.with_cpus(0.5))
            .and_then(|limits| limits.with_pids(7))
            .and_then(|limits| limits.with_disk(ByteSize::mib(2)))
            .and_then(|limits| limits.with_output(ByteSize::kib(3)))
            .and_then(|limits| limits.with_open_files(9))
            .unwrap();
        let compile = Limits::compile()
            .with_wall_time(Duration::from_secs(2))
            .and_then(|limits| limits.with_memory(ByteSize::mib(512)))
            .unwrap();
        let sent = translated(&["--isolation", "native", "--no-cache"], |builder| {
            builder
                .file("a.py", "1")
                .file("b.bin", vec![0xff])
                .stdin(Stdin::from_reader(&b"in"[..]))
                .args(["x"])
                .env("A", "b")
                .limits(limits)
                .compile_limits(compile)
                .network(NetworkPolicy::Localhost)
                .workdir("a/b")
                .collect("*.txt")
                .packages(["six"])
                .host_packages(false)
                .allow_missing(Protection::Landlock)
                .usage_interval(Duration::from_millis(50))
        });
        let wanted = json!({
            "language": "py", "version": "3.11",
            "files": [
                {"path": "a.py", "content": "1"},
                {"path": "b.bin", "content": "/w==", "encoding": "base64"},
            ],
            "stdin_stream": true, "args": ["x"], "env": {"A": "b"}, "timeout_ms": 1500,
            "cpu_time_ms": 1000, "compile_timeout_ms": 2000, "memory_limit_mb": 64, "cpus": 0.5,
            "pids": 7, "disk_mb": 2, "output_limit_kb": 3,
            "network": {"mode": "localhost", "dns": false}, "isolation": "native",
            "collect": ["*.txt"], "packages": ["six"], "allow_missing": ["landlock"],
            "usage_interval_ms": 50, "host_packages": false, "compile_memory_mb": 512,
            "open_files": 9, "workdir": "a/b", "compile_cache": false,
        });
        assert_eq!(sent.unwrap(), wanted);
    }

    #[test]
    fn unsupported_options_are_refused_by_name() {
        let code = |builder: RequestBuilder| builder.code("1");
        let message = translated(&["--image", "debian"], code).unwrap_err();
        assert!(message.starts_with("sandbox-run: --image "), "{message}");
        let volume = "/srv:/data".parse().unwrap();
        let message = translated(&[], |builder| builder.code("1").volume(volume)).unwrap_err();
        assert!(message.contains("--volume"), "{message}");
    }

    #[test]
    fn volumes_are_sent_to_a_server_on_this_host() {
        let sent = translated(&["--server", "unix:/run/s"], |builder| {
            let volumes = ["/srv/a:/a", "/srv/b:/b:rw"].map(|text| text.parse().unwrap());
            volumes.into_iter().fold(builder.code("1"), RequestBuilder::volume)
        });
        assert_eq!(sent.unwrap()["volumes"], json!(["/srv/a:/a", "/srv/b:/b:rw"]));
    }

    #[test]
    fn limits_between_two_units_are_sent_exactly() {
        let limits = Limits::run()
            .with_memory(ByteSize::kib(1536))
            .and_then(|limits| limits.with_wall_time(Duration::from_micros(1500)))
            .unwrap();
        let sent = translated(&[], |builder| builder.code("1").limits(limits)).unwrap();
        assert_eq!((&sent["memory_limit_mb"], &sent["timeout_ms"]), (&json!(1.5), &json!(1.5)));
    }
}
