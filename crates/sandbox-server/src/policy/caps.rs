//! What a request may ask for at most, as the server's owner says.

use std::time::Duration;

use sandbox::{ByteSize, format_duration};
use sandbox_api::{ExecuteRequest, Problem};

use crate::problems::invalid;

/// The largest limits that a client may set. What a client leaves out is not checked: the defaults of
/// the languages are the owner's business already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Caps {
    /// Wall time and CPU time of a stage.
    pub(crate) timeout: Duration,
    /// Memory of the run stage.
    pub(crate) memory: ByteSize,
    /// What is written to its file system.
    pub(crate) disk: ByteSize,
    /// What is printed.
    pub(crate) output: ByteSize,
    /// Processes and threads at once.
    pub(crate) pids: u32,
}

impl Caps {
    /// Refuses a limit above its cap, by name.
    pub(crate) fn check(&self, asked: &ExecuteRequest) -> Result<(), Problem> {
        let timeout = format_duration(self.timeout);
        let sizes = [
            ("timeout_ms", asked.timeout_ms, self.timeout_ms(), &timeout),
            ("cpu_time_ms", asked.cpu_time_ms, self.timeout_ms(), &timeout),
            ("compile_timeout_ms", asked.compile_timeout_ms, self.timeout_ms(), &timeout),
            ("memory_limit_mb", asked.memory_limit_mb, self.memory_mb(), &self.memory.to_string()),
            ("disk_mb", asked.disk_mb, self.disk_mb(), &self.disk.to_string()),
            ("output_limit_kb", asked.output_limit_kb, self.output_kb(), &self.output.to_string()),
            ("pids", asked.pids.map(u64::from), self.pids.into(), &self.pids.to_string()),
        ];
        for (field, asked, most, written) in sizes {
            if let Some(asked) = asked.filter(|asked| *asked > most) {
                let reason = format!("{asked} is more than {most} ({written}), the most here");
                return Err(invalid(field, reason));
            }
        }
        Ok(())
    }

    /// In the unit of the fields.
    pub(crate) fn timeout_ms(&self) -> u64 {
        u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX)
    }

    /// In the unit of the field.
    pub(crate) fn memory_mb(&self) -> u64 {
        self.memory.as_u64() >> 20
    }

    /// In the unit of the field.
    pub(crate) fn disk_mb(&self) -> u64 {
        self.disk.as_u64() >> 20
    }

    /// In the unit of the field.
    pub(crate) fn output_kb(&self) -> u64 {
        self.output.as_u64() >> 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const CAPS: Caps = Caps {
        timeout: Duration::from_secs(30),
        memory: ByteSize::mib(512),
        disk: ByteSize::mib(100),
        output: ByteSize::mib(1),
        pids: 50,
    };

    #[test]
    fn what_is_above_a_cap_is_refused_with_the_field_and_the_cap() {
        for (field, most, written) in [
            ("timeout_ms", 30_000, "30s"),
            ("cpu_time_ms", 30_000, "30s"),
            ("compile_timeout_ms", 30_000, "30s"),
            ("memory_limit_mb", 512, "512M"),
            ("disk_mb", 100, "100M"),
            ("output_limit_kb", 1024, "1M"),
            ("pids", 50, "50"),
        ] {
            let check = |value: u64| {
                let asked = json!({"language": "python", "code": "1", field: value});
                CAPS.check(&serde_json::from_value(asked).unwrap())
            };
            assert_eq!(check(most), Ok(()), "{field}");
            let detail = check(most + 1).unwrap_err().detail;
            let told = format!("{field}: {} is more than {most} ({written})", most + 1);
            assert!(detail.starts_with(&told), "{detail}");
        }
    }
}
