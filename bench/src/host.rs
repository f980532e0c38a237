//! The machine the figures are from, as far as it matters to them.

use std::process::Command;

use serde::Serialize;
use serde_json::{Value, json};

/// What is recorded with every result.
#[derive(Default, Serialize)]
pub(crate) struct HostFacts {
    date: String,
    processor: String,
    architecture: String,
    kernel: String,
    cores: usize,
    memory: String,
    load_before: String,
    bubblewrap: String,
    python: String,
    cgroups: String,
}

impl HostFacts {
    /// Looks around, before the measuring adds to the load.
    pub(crate) fn gather(cgroups: &str) -> Self {
        // Which version matters; where its directories lie is of no interest elsewhere.
        let version = cgroups.split(" below ").next().unwrap_or(cgroups);
        let uname = rustix::system::uname();
        Self {
            date: chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            processor: field_of("/proc/cpuinfo", "model name"),
            architecture: uname.machine().to_string_lossy().into_owned(),
            kernel: uname.release().to_string_lossy().into_owned(),
            cores: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            memory: field_of("/proc/meminfo", "MemTotal"),
            load_before: load(),
            bubblewrap: version_of("/usr/bin/bwrap"),
            python: version_of("/usr/bin/python3"),
            cgroups: version.to_owned(),
        }
    }

    /// The same as [`Self::lines`].
    pub(crate) fn text(&self) -> String {
        self.lines().join("\n") + "\n"
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        vec![
            format!(
                "{}, {} cores, {}, {}, Linux {}",
                self.processor, self.cores, self.memory, self.architecture, self.kernel
            ),
            [&*self.bubblewrap, &*self.python, &*self.cgroups]
                .into_iter()
                .filter(|fact| !fact.is_empty())
                .collect::<Vec<_>>()
                .join(", "),
            format!(
                "{}, load {} before, {} after (the measuring included)",
                self.date,
                self.load_before,
                load()
            ),
        ]
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut json = json!(self);
        json["load_after"] = json!(load());
        json
    }
}

/// How many processes wanted a core in the last minute, and in the last five.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}

fn field_of(file: &str, name: &str) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_once(':'))
        .map(|(_, value)| value.trim().to_owned());
    value.unwrap_or_else(|| format!("unknown {name}"))
}

fn version_of(program: &str) -> String {
    match Command::new(program).arg("--version").output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => format!("{program}: {error}"),
    }
}
