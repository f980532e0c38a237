//! Converts a request of a client into a checked request of the library. Every error names the field.

use std::fmt::Display;
use std::time::Duration;

use sandbox::{
    AllowRule, Allowlist, ByteSize, ExecuteError, ExecutionId, InvalidRequest, Limits,
    NetworkPolicy, PackageError, Protection, RelativePath, Request, RequestBuilder, ResolveError,
    Volume, with_causes,
};
use sandbox_api::{Code, ExecuteRequest, NetworkMode, Problem};

use super::{template, workspace};
use crate::policy::SharedCaches;
use crate::problems::invalid;

/// The maximum number of labels, and of characters in the name or value of one.
const MAX_LABELS: usize = 32;
const MAX_LABEL_LEN: usize = 256;

const MIB: f64 = 1_048_576.0;
const KIB: f64 = 1024.0;

/// Converts a request of the key `owner`. A recovered execution has an `id` already.
pub(super) fn convert(
    asked: &ExecuteRequest,
    owner: Option<&str>,
    id: Option<ExecutionId>,
    caches: SharedCaches,
) -> Result<Request, Problem> {
    check_labels(asked)?;
    if let Some(directory) = &asked.workdir {
        directory.parse::<RelativePath>().map_err(|error| invalid("workdir", error))?;
    }
    let mut builder = Request::builder(&language(asked)?)
        .args(asked.args.iter().cloned())
        .limits(run_limits(asked)?)
        .compile_limits(compile_limits(asked)?)
        .packages(asked.packages.iter().cloned())
        .workspaces_of(workspace::owner(owner));
    builder = caches.add(owner, builder);
    builder = network(asked, builder)?;
    if let Some(id) = id {
        builder = builder.id(id);
    }
    builder = program(asked, builder)?;
    if asked.stdin_stream && asked.stdin.is_some() {
        return Err(invalid("stdin_stream", "cannot be used together with 'stdin'"));
    }
    if let Some(stdin) = &asked.stdin {
        builder = builder.stdin(stdin.as_str());
    }
    for (name, value) in &asked.env {
        builder = builder.env(name, value);
    }
    for pattern in &asked.collect {
        builder = builder.collect(pattern);
    }
    if let Some(directory) = &asked.workdir {
        builder = builder.workdir(directory);
    }
    if let Some(name) = &asked.environment {
        builder = builder.environment(name);
    }
    if let Some(workspace) = &asked.workspace {
        builder = builder.workspace(workspace);
    }
    for volume in &asked.volumes {
        let volume: Volume = volume.parse().map_err(|error| invalid("volumes", error))?;
        builder = builder.volume(volume);
    }
    builder = builder
        .host_packages(asked.host_packages.unwrap_or(true))
        .compile_cache(asked.compile_cache.unwrap_or(true));
    for name in &asked.allow_missing {
        let protection: Protection =
            name.parse().map_err(|error| invalid("allow_missing", error))?;
        builder = builder.allow_missing(protection);
    }
    if let Some(interval) = asked.usage_interval_ms {
        builder = builder.usage_interval(millis(interval));
    }
    builder.build().map_err(|error| invalid(field_of(&error), error))
}

/// The problem that a client is told of when the library does not accept its request.
pub(super) fn refusal(error: &ExecuteError) -> Problem {
    match error {
        ExecuteError::Language(unknown @ ResolveError::UnknownLanguage { .. }) => {
            Problem::new(Code::UnknownLanguage, unknown.to_string())
        }
        ExecuteError::Language(missing) => {
            Problem::new(Code::LanguageUnavailable, missing.to_string())
        }
        ExecuteError::Request(error) => invalid(field_of(error), error),
        ExecuteError::Volume(error) => invalid("volumes", error),
        ExecuteError::NoSources { .. } => invalid("files", error),
        ExecuteError::HostPackages { .. } => invalid("host_packages", error),
        ExecuteError::Packages(PackageError::NoSuchEnvironment(name)) => {
            let reason = format!("there is no '{name}': POST /api/v1/environments makes one");
            invalid("environment", reason)
        }
        ExecuteError::Packages(PackageError::OtherRuntime { name, built_for, asked }) => {
            let reason = format!("'{name}' was built for {built_for}, and this is {asked}");
            invalid("environment", reason)
        }
        ExecuteError::Packages(error) if error.is_internal() => {
            // Errors in files of the host are not for clients.
            tracing::error!(reason = with_causes(error), "the environments cannot be read");
            Problem::new(
                Code::Internal,
                "the environments cannot be read; the server's log has why",
            )
        }
        ExecuteError::Packages(error) => invalid("packages", with_causes(error)),
        ExecuteError::Image(_) | ExecuteError::ImageBackend(_) => {
            // The recipe names the image, and the operator owns the recipes.
            tracing::error!(reason = with_causes(error), "the image of a language cannot be used");
            Problem::new(
                Code::LanguageUnavailable,
                "the image of this language cannot be used; the server's log has why",
            )
        }
        other => Problem::new(Code::InvalidField, with_causes(other)),
    }
}

/// The size of the code, files and template that the client sent, in bytes.
pub(super) fn code_size(asked: &ExecuteRequest) -> usize {
    let files = asked.files.iter().map(|file| file.content.len());
    let code = asked.code.as_deref().map_or(0, str::len);
    let template = asked.template.as_deref().map_or(0, str::len);
    let values = asked.template_values.values().map(String::len);
    files.chain(values).fold(code.saturating_add(template), usize::saturating_add)
}

fn check_labels(asked: &ExecuteRequest) -> Result<(), Problem> {
    if asked.labels.len() > MAX_LABELS {
        return Err(invalid("labels", format!("there are more than {MAX_LABELS}")));
    }
    let is_long = |text: &String| text.chars().count() > MAX_LABEL_LEN;
    if asked.labels.iter().any(|(name, value)| is_long(name) || is_long(value)) {
        return Err(invalid("labels", format!("one is longer than {MAX_LABEL_LEN} letters")));
    }
    Ok(())
}

fn language(asked: &ExecuteRequest) -> Result<String, Problem> {
    match &asked.version {
        None => Ok(asked.language.clone()),
        Some(_) if asked.language.contains('@') => {
            Err(invalid("version", "the language names a version already"))
        }
        Some(version) => Ok(format!("{}@{version}", asked.language)),
    }
}

/// Adds the code and the files, rendered into the template if there is one.
fn program(asked: &ExecuteRequest, mut builder: RequestBuilder) -> Result<RequestBuilder, Problem> {
    let mut files = Vec::with_capacity(asked.files.len());
    for file in &asked.files {
        let bytes = file.bytes().map_err(|error| invalid("files", error))?;
        files.push((file.path.clone(), bytes));
    }
    if asked.template.is_none() && !asked.template_values.is_empty() {
        return Err(invalid("template_values", "there is no template to put them into"));
    }
    let mut code = asked.code.clone();
    if let Some(template) = &asked.template {
        let fill = |code: Option<&str>| {
            template::fill(template, code, &asked.template_values)
                .map_err(|reason| invalid("template", reason))
        };
        let snippet = if let (None, Some((path, bytes))) = (&code, files.first_mut()) {
            let text = std::str::from_utf8(bytes).map_err(|_| {
                invalid("template", format!("'{path}' is not text, so it cannot fill one"))
            })?;
            let rendered = fill(Some(text))?;
            *bytes = rendered.text.into_bytes();
            rendered.snippet
        } else {
            let rendered = fill(code.as_deref())?;
            code = Some(rendered.text);
            rendered.snippet
        };
        builder = builder.snippet(snippet);
    }
    if let Some(code) = code {
        builder = builder.code(code);
    }
    Ok(files.into_iter().fold(builder, |builder, (path, bytes)| builder.file(path, bytes)))
}

fn network(asked: &ExecuteRequest, builder: RequestBuilder) -> Result<RequestBuilder, Problem> {
    let Some(network) = &asked.network else {
        return Ok(builder);
    };
    if network.mode != NetworkMode::Allowlist && (network.dns || !network.allow.is_empty()) {
        return Err(invalid("network", "'allow' and 'dns' go with the mode allowlist only"));
    }
    match network.mode {
        NetworkMode::None => Ok(builder.network(NetworkPolicy::None)),
        NetworkMode::Localhost => Ok(builder.network(NetworkPolicy::Localhost)),
        NetworkMode::Allowlist => {
            let rules = network.allow.iter().map(|rule| rule.parse::<AllowRule>());
            let rules = rules.collect::<Result<Vec<_>, _>>();
            let list = rules.and_then(|rules| Allowlist::new(rules, network.dns));
            Ok(builder.allow(list.map_err(|error| invalid("network", error))?))
        }
    }
}

fn run_limits(asked: &ExecuteRequest) -> Result<Limits, Problem> {
    let mut limits = Limits::run();
    if let Some(time) = asked.timeout_ms {
        limits = checked("timeout_ms", limits.with_wall_time(millis(time)))?;
    }
    if let Some(time) = asked.cpu_time_ms {
        limits = checked("cpu_time_ms", limits.with_cpu_time(millis(time)))?;
    }
    if let Some(size) = asked.memory_limit_mb {
        limits = checked("memory_limit_mb", limits.with_memory(bytes(size, MIB)))?;
    }
    if let Some(cpus) = asked.cpus {
        limits = checked("cpus", limits.with_cpus(cpus))?;
    }
    if let Some(pids) = asked.pids {
        limits = checked("pids", limits.with_pids(pids))?;
    }
    if let Some(size) = asked.disk_mb {
        limits = checked("disk_mb", limits.with_disk(bytes(size, MIB)))?;
    }
    if let Some(size) = asked.output_limit_kb {
        limits = checked("output_limit_kb", limits.with_output(bytes(size, KIB)))?;
    }
    if let Some(count) = asked.open_files {
        limits = checked("open_files", limits.with_open_files(count))?;
    }
    Ok(limits)
}

fn compile_limits(asked: &ExecuteRequest) -> Result<Limits, Problem> {
    let mut limits = Limits::compile();
    if let Some(time) = asked.compile_timeout_ms {
        limits = checked("compile_timeout_ms", limits.with_wall_time(millis(time)))?;
    }
    if let Some(size) = asked.compile_memory_mb {
        limits = checked("compile_memory_mb", limits.with_memory(bytes(size, MIB)))?;
    }
    Ok(limits)
}

/// A number of milliseconds, to the nanosecond. What is no duration becomes one that the range check refuses.
fn millis(number: f64) -> Duration {
    Duration::try_from_secs_f64(number / 1e3).unwrap_or(if number > 0.0 {
        Duration::MAX
    } else {
        Duration::ZERO
    })
}

/// A number of units of this size, to the byte.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and the range check refuses the result"
)]
fn bytes(number: f64, unit: f64) -> ByteSize {
    ByteSize::bytes((number * unit).round() as u64)
}

fn checked<E: Display>(field: &str, limits: Result<Limits, E>) -> Result<Limits, Problem> {
    limits.map_err(|error| invalid(field, error))
}

fn field_of(error: &InvalidRequest) -> &'static str {
    match error {
        InvalidRequest::NoCode => "code",
        InvalidRequest::Glob(_) => "collect",
        InvalidRequest::Text(_) => "args or env",
        InvalidRequest::Package(_) | InvalidRequest::Packages(_) => "packages",
        InvalidRequest::Environment(_) => "environment",
        InvalidRequest::Workspace(_) => "workspace",
        InvalidRequest::Network(_) => "network",
        InvalidRequest::Language(_) => "language",
        InvalidRequest::UsageInterval(_) => "usage_interval_ms",
        _ => "files",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn converted(mut fields: Value) -> Result<Request, Problem> {
        let whole = fields.as_object_mut().unwrap();
        whole.entry("language").or_insert("python".into());
        if !whole.contains_key("files") {
            whole.entry("code").or_insert("1".into());
        }
        convert(&serde_json::from_value(fields).unwrap(), Some("k"), None, SharedCaches::default())
    }

    #[test]
    fn every_field_arrives() {
        let request = converted(json!({
            "version": "3.11", "files": [{"path": "a.bin", "content": "/w==", "encoding": "base64"}],
            "args": ["x"], "env": {"A": "b"}, "timeout_ms": 1500, "cpu_time_ms": 700,
            "compile_timeout_ms": 2500, "memory_limit_mb": 64, "cpus": 0.5, "pids": 9,
            "disk_mb": 3, "output_limit_kb": 5, "network": {"mode": "localhost"},
            "collect": ["*.txt"], "packages": ["six"], "allow_missing": ["landlock"],
            "usage_interval_ms": 50, "isolation": "auto", "workspace": "w:ro", "host_packages": false,
            "compile_memory_mb": 512, "open_files": 99, "workdir": "sub/dir", "compile_cache": false
        }))
        .unwrap();
        assert_eq!(request.compile_limits().memory(), ByteSize::mib(512));
        assert_eq!(request.run_limits().open_files(), 99);
        assert_eq!(request.workdir().unwrap().as_str(), "sub/dir");
        assert!(!request.uses_compile_cache());
        assert!(converted(json!({})).unwrap().uses_compile_cache());
        assert!(!request.host_packages());
        assert!(converted(json!({})).unwrap().host_packages());
        assert_eq!(request.language().to_string(), "python@3.11");
        assert_eq!(request.files()[0].contents, [0xff]);
        assert_eq!((request.args()[0].as_str(), request.env()["A"].as_str()), ("x", "b"));
        let limits = request.run_limits();
        assert_eq!(limits.wall_time(), Duration::from_millis(1500));
        assert_eq!(limits.cpu_time(), Some(Duration::from_millis(700)));
        assert_eq!(limits.memory(), ByteSize::mib(64));
        assert_eq!((limits.cpu_millis(), limits.pids()), (500, 9));
        assert_eq!((limits.disk(), limits.output()), (ByteSize::mib(3), ByteSize::kib(5)));
        assert_eq!(request.compile_limits().wall_time(), Duration::from_millis(2500));
        assert_eq!(request.network(), NetworkPolicy::Localhost);
        assert_eq!(request.collect()[0].to_string(), "*.txt");
        assert_eq!(request.packages()[0].as_str(), "six");
        assert!(request.allow_missing().contains(&Protection::Landlock));
        assert_eq!(request.usage_interval(), Some(Duration::from_millis(50)));
        assert_eq!(request.workspace().unwrap().to_string(), "w:ro");
        assert_eq!(request.workspaces_of(), Some("key:k"));
        assert_eq!(request.compile_cache_owner(), Some("k"));
        assert_eq!(request.package_cache_owner(), Some("k"));
    }

    #[test]
    fn fractions_are_exact() {
        let request = converted(json!({
            "timeout_ms": 1500.001, "cpu_time_ms": 1.000_001, "memory_limit_mb": 64.000_000_953_674_32,
            "disk_mb": 0.0625, "output_limit_kb": 0.000_976_562_5, "usage_interval_ms": 10.5
        }));
        let request = request.unwrap();
        let limits = request.run_limits();
        assert_eq!(limits.wall_time(), Duration::from_micros(1_500_001));
        assert_eq!(limits.cpu_time(), Some(Duration::from_nanos(1_000_001)));
        assert_eq!(limits.memory(), ByteSize::bytes((64 << 20) + 1));
        assert_eq!((limits.disk(), limits.output()), (ByteSize::kib(64), ByteSize::bytes(1)));
        assert_eq!(request.usage_interval(), Some(Duration::from_micros(10_500)));
        // The largest, and the smallest step at it.
        let largest = converted(json!({"memory_limit_mb": 1_048_575.999_999_046_3})).unwrap();
        assert_eq!(largest.run_limits().memory(), ByteSize::bytes((1 << 40) - 1));
        let longest = converted(json!({"timeout_ms": 86_399_999.999_999})).unwrap();
        assert_eq!(longest.run_limits().wall_time(), Duration::from_nanos(86_399_999_999_999));
    }

    #[test]
    fn a_refusal_names_the_field() {
        for (fields, field) in [
            (json!({"timeout_ms": 0}), "timeout_ms"),
            (json!({"timeout_ms": 0.5}), "timeout_ms"),
            (json!({"timeout_ms": -1}), "timeout_ms"),
            (json!({"compile_memory_mb": 0}), "compile_memory_mb"),
            (json!({"open_files": 3}), "open_files"),
            (json!({"workdir": "../x"}), "workdir"),
            (json!({"cpu_time_ms": u64::MAX}), "cpu_time_ms"),
            (json!({"memory_limit_mb": u64::MAX}), "memory_limit_mb"),
            (json!({"disk_mb": 1_u64 << 44}), "disk_mb"),
            (json!({"output_limit_kb": 0}), "output_limit_kb"),
            (json!({"cpus": -1.0}), "cpus"),
            (json!({"pids": 0}), "pids"),
            (json!({"compile_timeout_ms": 0}), "compile_timeout_ms"),
            (json!({"files": []}), "code"),
            (json!({"files": [{"path": "../a", "content": ""}]}), "files"),
            (json!({"files": [{"path": "a", "content": "?", "encoding": "base64"}]}), "files"),
            (json!({"args": ["\0"]}), "args or env"),
            (json!({"collect": ["../*"]}), "collect"),
            (json!({"packages": ["-r"]}), "packages"),
            (json!({"environment": ".."}), "environment"),
            (json!({"allow_missing": ["magic"]}), "allow_missing"),
            (json!({"volumes": ["/srv"]}), "volumes"),
            (json!({"volumes": ["/proc:/data"]}), "volumes"),
            (json!({"network": {"mode": "allowlist", "allow": ["a b"]}}), "network"),
            (json!({"network": {"mode": "none", "allow": ["a"]}}), "network"),
            (json!({"workspace": "../w"}), "workspace"),
            (json!({"workspace": "w:x"}), "workspace"),
            (json!({"labels": {"a": "x".repeat(300)}}), "labels"),
            (json!({"language": "a b"}), "language"),
            (json!({"language": "python@3", "version": "3"}), "version"),
            (json!({"usage_interval_ms": 1}), "usage_interval_ms"),
            (json!({"template": "{% for a in b %}"}), "template"),
            (json!({"template_values": {"a": "b"}}), "template_values"),
        ] {
            let problem = converted(fields).unwrap_err();
            assert_eq!(problem.code, Code::InvalidField);
            assert!(problem.detail.starts_with(&format!("{field}: ")), "{}", problem.detail);
        }
    }

    #[test]
    fn a_template_frames_the_code_or_the_first_file() {
        let template = "def f():\n    {{ code | indent(4) }}\n";
        let request = converted(json!({"template": template, "code": "a\nb"})).unwrap();
        assert_eq!(request.code(), Some("def f():\n    a\n    b\n"));
        assert_eq!(request.snippet().unwrap().lines, 2..=3);
        let valued = json!({"template": "{{ n }}{{ code }}", "template_values": {"n": "9"}});
        assert_eq!(converted(valued).unwrap().code(), Some("91"));
        let files = json!([{"path": "x.py", "content": "a"}, {"path": "y.py", "content": "b"}]);
        let request = converted(json!({"template": template, "files": files})).unwrap();
        assert_eq!(request.files()[0].contents, b"def f():\n    a\n");
        assert_eq!(request.files()[1].contents, b"b");
    }

    #[test]
    fn a_name_given_before_is_kept() {
        let asked = ExecuteRequest {
            language: "bash".into(),
            code: Some(String::new()),
            ..ExecuteRequest::default()
        };
        let id = ExecutionId::generate();
        assert_eq!(convert(&asked, None, Some(id), SharedCaches::default()).unwrap().id(), id);
    }
}
