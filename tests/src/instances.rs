//! The backends with instances, which tests use without an engine.

use std::collections::BTreeMap;

use sandbox::{Backend, ProcessSpec, Protection};
use sandbox_backends::docker::{DockerBackend, DockerOptions};
use sandbox_backends::native::{NativeBackend, NativeOptions, Spare};
use sandbox_backends::oci::{OciBackend, OciOptions, OciRuntime};

use crate::backend::engine;

/// Starts a backend that prepares nothing ahead.
pub type Start = fn() -> Box<dyn Backend>;

/// Every backend with instances, by its name. Those of another runtime than the native one need
/// root.
pub const BACKENDS: &[(&str, Start)] = &[
    ("native", || Box::new(native_without(&[]))),
    ("runc", || containers(OciRuntime::Runc)),
    ("crun", || containers(OciRuntime::Crun)),
    ("docker", || {
        let options = DockerOptions { spare: 0, host: engine(), ..DockerOptions::default() };
        Box::new(DockerBackend::start(&options).expect("the backend starts"))
    }),
];

/// The native backend without these protections. It prepares nothing ahead.
pub fn native_without(protections: &[Protection]) -> NativeBackend {
    let without = protections.iter().copied().collect();
    let options =
        NativeOptions { spare: Spare::Keep(0), max_warm: 0, without, ..NativeOptions::default() };
    NativeBackend::start(&options).expect("the backend starts")
}

fn containers(runtime: OciRuntime) -> Box<dyn Backend> {
    let options = OciOptions { spare: 0, runtime: Some(runtime), ..OciOptions::default() };
    Box::new(OciBackend::runc(&options).expect("the backend starts"))
}

/// A process that runs a shell script.
pub fn bash(script: &str) -> ProcessSpec {
    command(&["/usr/bin/bash", "-c", script])
}

/// A process that runs a Python program.
pub fn python(program: &str) -> ProcessSpec {
    command(&["/usr/bin/python3", "-c", program])
}

fn command(words: &[&str]) -> ProcessSpec {
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    ProcessSpec::new(words.iter().map(|word| (*word).to_owned()).collect(), env)
}
