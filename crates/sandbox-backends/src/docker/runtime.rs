//! Selects the Engine's runtime that starts containers.

use std::collections::HashMap;

use bollard::models::{Runtime as Described, SystemInfo};
use sandbox_core::BackendError;

use super::engine::Engine;
use crate::container::Kernel;

/// The name of gVisor's program, and usually of the runtime.
const GVISOR: &str = "runsc";

/// A runtime of the Engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Runtime {
    /// Its name in the Engine, if it is not the default.
    pub(super) name: Option<String>,
    /// The kernel that serves programs in its containers.
    pub(super) kernel: Kernel,
}

impl Runtime {
    /// Finds the runtime. The error is a message for people.
    pub(super) fn choose(engine: &Engine, wanted: Option<&str>) -> Result<Self, BackendError> {
        let client = engine.docker.clone();
        let info = engine.wait("look at the Docker Engine", async move { client.info().await })?;
        Self::among(info, wanted).map_err(BackendError::Refused)
    }

    fn among(info: SystemInfo, wanted: Option<&str>) -> Result<Self, String> {
        let (runtimes, preferred) = (info.runtimes.unwrap_or_default(), info.default_runtime);
        let found = wanted.or(preferred.as_deref()).and_then(|name| runtimes.get_key_value(name));
        let kernel = match (found, wanted) {
            (Some((name, described)), _) => kernel_of(name, described)?,
            (None, None) => Kernel::Host,
            (None, Some(name)) => {
                return Err(format!(
                    "the Docker Engine has no runtime '{name}': name one that it has ({}) with \
                     --docker-runtime, or use --isolation native",
                    names(&runtimes)
                ));
            }
        };
        Ok(Self { name: wanted.map(str::to_owned), kernel })
    }
}

fn kernel_of(name: &str, described: &Described) -> Result<Kernel, String> {
    let path = described.path.as_deref().unwrap_or_default();
    if name != GVISOR && !path.ends_with(GVISOR) {
        return Ok(Kernel::Host);
    }
    let arguments = described.runtime_args.iter().flatten();
    let mut arguments = arguments.map(|argument| argument.trim_start_matches('-'));
    // Containers of gVisor are found and limited through their cgroups.
    if arguments.any(|argument| matches!(argument, "ignore-cgroups" | "ignore-cgroups=true")) {
        return Err(format!(
            "the runtime '{name}' of the Docker Engine ignores cgroups: take --ignore-cgroups out of its \
             settings, or use --isolation gvisor"
        ));
    }
    Ok(Kernel::Gvisor)
}

fn names(runtimes: &HashMap<String, Described>) -> String {
    let mut names: Vec<&str> = runtimes.keys().map(String::as_str).collect();
    names.sort_unstable();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> SystemInfo {
        let described = |(name, path, arguments): (&str, &str, &[&str])| {
            let arguments = arguments.iter().map(|&argument| argument.to_owned()).collect();
            let path = Some(path.to_owned());
            let described =
                Described { path, runtime_args: Some(arguments), ..Described::default() };
            (name.to_owned(), described)
        };
        let runtimes = [
            ("runc", "runc", &[][..]),
            ("runsc", "", &[]),
            ("safe", "/opt/runsc", &["--network=none"]),
            ("loose", "/opt/runsc", &["--ignore-cgroups"]),
        ];
        SystemInfo {
            runtimes: Some(runtimes.into_iter().map(described).collect()),
            default_runtime: Some("runc".to_owned()),
            ..SystemInfo::default()
        }
    }

    #[test]
    fn gvisor_is_known_by_the_name_of_the_runtime_or_of_its_program() {
        for (name, kernel) in
            [("runc", Kernel::Host), ("runsc", Kernel::Gvisor), ("safe", Kernel::Gvisor)]
        {
            let name = name.to_owned();
            let found = Runtime::among(info(), Some(&name));
            assert_eq!(found, Ok(Runtime { name: Some(name), kernel }));
        }
    }

    #[test]
    fn the_default_runtime_is_checked_too() {
        let preferred = |name: &str| {
            let info = SystemInfo { default_runtime: Some(name.to_owned()), ..info() };
            Runtime::among(info, None)
        };
        assert_eq!(preferred("runc"), Ok(Runtime { name: None, kernel: Kernel::Host }));
        assert_eq!(preferred("safe"), Ok(Runtime { name: None, kernel: Kernel::Gvisor }));
    }

    #[test]
    fn what_cannot_be_had_is_refused() {
        let unknown = Runtime::among(info(), Some("kata")).unwrap_err();
        assert!(unknown.contains("'kata'"), "{unknown}");
        assert!(unknown.contains("(loose, runc, runsc, safe)"), "{unknown}");
        let loose = Runtime::among(info(), Some("loose")).unwrap_err();
        assert!(loose.contains("ignores cgroups"), "{loose}");
    }
}
