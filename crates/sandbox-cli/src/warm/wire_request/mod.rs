//! The serialized form of a request for the helper. What it cannot express is refused rather than dropped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sandbox::{
    ByteSize, ExecutionId, Limits, Protection, Request, Snippet, Stdin, Volume, VolumeAccess,
};
use serde::{Deserialize, Serialize};

use crate::errors::Failure;

/// Everything a command line can ask for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireRequest {
    id: ExecutionId,
    language: String,
    code: Option<String>,
    /// Their paths. The contents follow, each in a frame of its own.
    pub(super) files: Vec<String>,
    /// Whether the program's standard input is asked for as it is read.
    pub(super) has_input: bool,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    run_limits: WireLimits,
    compile_limits: WireLimits,
    network: String,
    collect: Vec<String>,
    /// On the host, inside, and whether it can be written.
    volumes: Vec<(PathBuf, PathBuf, bool)>,
    workdir: Option<String>,
    allow_missing: Vec<String>,
    usage_interval: Option<Duration>,
    packages: Vec<String>,
    host_packages: bool,
    environment: Option<String>,
    workspace: Option<String>,
    snippet: Option<WireSnippet>,
}

/// Limits that were typed; the others are the library's own.
#[derive(Debug, Default, Serialize, Deserialize)]
struct WireLimits {
    wall_time: Option<Duration>,
    cpu_time: Option<Duration>,
    memory: Option<u64>,
    cpus: Option<f64>,
    pids: Option<u32>,
    disk: Option<u64>,
    output: Option<u64>,
    open_files: Option<u32>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireSnippet {
    lines: (usize, usize),
    first: usize,
    first_indent: usize,
    indent: usize,
    head: usize,
    tail: usize,
    tail_in_template: usize,
}

impl WireRequest {
    /// What to send for this request.
    pub(super) fn of(request: &Request) -> Result<Self, Failure> {
        for (what, is_used) in [
            ("input given as bytes", matches!(request.stdin(), Stdin::Bytes(_))),
            ("a file that can be executed", request.files().iter().any(|file| file.executable)),
            ("a directory of environments", request.environments().is_some()),
            ("a time of acceptance", request.acceptance().is_some()),
            ("an image", request.image().is_some()),
            ("a network with an allow-list", request.allow().is_some()),
            ("workspaces of others", request.workspaces_of().is_some()),
            // The order says it for the command.
            ("a request without compiled programs", !request.uses_compile_cache()),
            ("an owner of compiled programs", request.compile_cache_owner().is_some()),
            ("an owner of packages", request.package_cache_owner().is_some()),
        ] {
            if is_used {
                return Err(Failure::Usage(format!("{what} cannot be used with --warm")));
            }
        }
        let asked = Self {
            id: request.id(),
            language: request.language().to_string(),
            code: request.code().map(ToOwned::to_owned),
            files: request.files().iter().map(|file| file.path.as_str().to_owned()).collect(),
            has_input: matches!(request.stdin(), Stdin::Reader(_)),
            args: request.args().to_vec(),
            env: request.env().clone(),
            run_limits: WireLimits::of(request.run_limits()),
            compile_limits: WireLimits::of(request.compile_limits()),
            network: request.network().to_string(),
            collect: request.collect().iter().map(ToString::to_string).collect(),
            volumes: request.volumes().iter().map(volume).collect::<Result<_, _>>()?,
            workdir: request.workdir().map(|path| path.as_str().to_owned()),
            allow_missing: request.allow_missing().iter().map(ToString::to_string).collect(),
            usage_interval: request.usage_interval(),
            packages: request.packages().iter().map(ToString::to_string).collect(),
            host_packages: request.host_packages(),
            environment: request.environment().map(|name| name.as_str().to_owned()),
            workspace: request.workspace().map(ToString::to_string),
            snippet: request.snippet().map(WireSnippet::of),
        };
        asked.run_limits.must_be(request.run_limits(), Limits::run())?;
        asked.compile_limits.must_be(request.compile_limits(), Limits::compile())?;
        Ok(asked)
    }

    /// The request again, with these contents of its files and this standard input.
    pub(super) fn into_request(
        self,
        contents: Vec<Vec<u8>>,
        stdin: Stdin,
    ) -> Result<Request, Failure> {
        if contents.len() != self.files.len() {
            return Err(Failure::Internal(
                "the helper of --warm received only some of the files".to_owned(),
            ));
        }
        let mut builder = Request::builder(&self.language)
            .id(self.id)
            .stdin(stdin)
            .args(self.args)
            .limits(self.run_limits.limits(Limits::run())?)
            .compile_limits(self.compile_limits.limits(Limits::compile())?)
            .network(self.network.parse().map_err(|error| Failure::usage(&error))?)
            .packages(self.packages)
            .host_packages(self.host_packages)
            .snippet(self.snippet.map(|snippet| snippet.snippet()));
        if let Some(code) = self.code {
            builder = builder.code(code);
        }
        for (path, contents) in self.files.into_iter().zip(contents) {
            builder = builder.file(path, contents);
        }
        for (name, value) in self.env {
            builder = builder.env(name, value);
        }
        for glob in self.collect {
            builder = builder.collect(glob);
        }
        for (host, inside, writable) in self.volumes {
            let access = if writable { VolumeAccess::ReadWrite } else { VolumeAccess::ReadOnly };
            let volume = Volume::new(&host, &inside, access);
            builder = builder.volume(volume.map_err(|error| Failure::usage(&error))?);
        }
        for name in self.allow_missing {
            let protection: Result<Protection, _> = name.parse();
            builder = builder.allow_missing(protection.map_err(|error| Failure::usage(&error))?);
        }
        if let Some(directory) = self.workdir {
            builder = builder.workdir(directory);
        }
        if let Some(interval) = self.usage_interval {
            builder = builder.usage_interval(interval);
        }
        if let Some(name) = self.environment {
            builder = builder.environment(name);
        }
        if let Some(workspace) = self.workspace {
            builder = builder.workspace(workspace);
        }
        builder.build().map_err(|error| Failure::usage(&error))
    }
}

fn volume(volume: &Volume) -> Result<(PathBuf, PathBuf, bool), Failure> {
    let (host, inside) = (volume.host(), volume.destination());
    let is_text = |path: &Path| path.to_str().is_some();
    if !is_text(host) || !is_text(inside) {
        let reason = "--volume paths must be UTF-8 with --warm";
        return Err(Failure::Usage(reason.to_owned()));
    }
    let writable = volume.access() == VolumeAccess::ReadWrite;
    Ok((host.to_owned(), inside.to_owned(), writable))
}

impl WireLimits {
    fn of(limits: &Limits) -> Self {
        let asked = |protection| limits.is_requested(protection);
        Self {
            wall_time: asked(Protection::WallTime).then(|| limits.wall_time()),
            cpu_time: limits.cpu_time().filter(|_| asked(Protection::CpuTime)),
            memory: asked(Protection::Memory).then(|| limits.memory().as_u64()),
            cpus: asked(Protection::Cpu).then(|| limits.cpus()),
            pids: asked(Protection::Pids).then(|| limits.pids()),
            disk: asked(Protection::Disk).then(|| limits.disk().as_u64()),
            output: asked(Protection::Output).then(|| limits.output().as_u64()),
            open_files: asked(Protection::OpenFiles).then(|| limits.open_files()),
        }
    }

    fn limits(&self, mut limits: Limits) -> Result<Limits, Failure> {
        let wrong = |error| Failure::usage(&error);
        if let Some(time) = self.wall_time {
            limits = limits.with_wall_time(time).map_err(wrong)?;
        }
        if let Some(time) = self.cpu_time {
            limits = limits.with_cpu_time(time).map_err(wrong)?;
        }
        if let Some(size) = self.memory {
            limits = limits.with_memory(ByteSize::bytes(size)).map_err(wrong)?;
        }
        if let Some(cpus) = self.cpus {
            limits = limits.with_cpus(cpus).map_err(wrong)?;
        }
        if let Some(pids) = self.pids {
            limits = limits.with_pids(pids).map_err(wrong)?;
        }
        if let Some(size) = self.disk {
            limits = limits.with_disk(ByteSize::bytes(size)).map_err(wrong)?;
        }
        if let Some(size) = self.output {
            limits = limits.with_output(ByteSize::bytes(size)).map_err(wrong)?;
        }
        if let Some(count) = self.open_files {
            limits = limits.with_open_files(count).map_err(wrong)?;
        }
        Ok(limits)
    }

    /// Makes sure that these say all that the limits do.
    fn must_be(&self, limits: &Limits, usual: Limits) -> Result<(), Failure> {
        if self.limits(usual)? == *limits {
            return Ok(());
        }
        Err(Failure::Internal("cannot send these limits to the helper of --warm".to_owned()))
    }
}

impl WireSnippet {
    fn of(snippet: &Snippet) -> Self {
        let Snippet { lines, first, first_indent, indent, head, tail, tail_in_template } = snippet;
        Self {
            lines: (*lines.start(), *lines.end()),
            first: *first,
            first_indent: *first_indent,
            indent: *indent,
            head: *head,
            tail: *tail,
            tail_in_template: *tail_in_template,
        }
    }

    fn snippet(&self) -> Snippet {
        Snippet {
            lines: self.lines.0..=self.lines.1,
            first: self.first,
            first_indent: self.first_indent,
            indent: self.indent,
            head: self.head,
            tail: self.tail,
            tail_in_template: self.tail_in_template,
        }
    }
}

#[cfg(test)]
mod tests;
