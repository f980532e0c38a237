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
    /// Memory of a stage.
    pub(crate) memory: ByteSize,
    /// What is written to its file system.
    pub(crate) disk: ByteSize,
    /// What is printed.
    pub(crate) output: ByteSize,
    /// Processes and threads at once.
    pub(crate) pids: u32,
    /// Open files of a process.
    pub(crate) open_files: u32,
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
            (
                "compile_memory_mb",
                asked.compile_memory_mb,
                self.memory_mb(),
                &self.memory.to_string(),
            ),
            ("pids", asked.pids.map(f64::from), self.pids.into(), &self.pids.to_string()),
            (
                "open_files",
                asked.open_files.map(f64::from),
                self.open_files.into(),
                &self.open_files.to_string(),
            ),
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
    pub(crate) fn timeout_ms(&self) -> f64 {
        self.timeout.div_duration_f64(Duration::from_millis(1))
    }

    /// In the unit of the fields.
    pub(crate) fn memory_mb(&self) -> f64 {
        in_units(self.memory, ByteSize::mib(1))
    }

    /// In the unit of the field.
    pub(crate) fn disk_mb(&self) -> f64 {
        in_units(self.disk, ByteSize::mib(1))
    }

    /// In the unit of the field.
    pub(crate) fn output_kb(&self) -> f64 {
        in_units(self.output, ByteSize::kib(1))
    }
}

#[expect(clippy::cast_precision_loss, reason = "no cap comes near 2^52 bytes")]
fn in_units(size: ByteSize, unit: ByteSize) -> f64 {
    size.as_u64() as f64 / unit.as_u64() as f64
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
        open_files: 300,
    };

    #[test]
    fn what_is_above_a_cap_is_refused_with_the_field_and_the_cap() {
        for (field, most, written) in [
            ("timeout_ms", 30_000, "30s"),
            ("cpu_time_ms", 30_000, "30s"),
            ("compile_timeout_ms", 30_000, "30s"),
            ("memory_limit_mb", 512, "512M"),
            ("compile_memory_mb", 512, "512M"),
            ("disk_mb", 100, "100M"),
            ("output_limit_kb", 1024, "1M"),
            ("pids", 50, "50"),
            ("open_files", 300, "300"),
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
