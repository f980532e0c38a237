use std::time::Duration;

use sandbox_core::{ByteSize, InvalidLimit, Limits, Protection, parse_duration};
use serde::Deserialize;

/// Default limits of a language, by stage.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StageLimits {
    /// Of the compile stage.
    #[serde(default)]
    pub(crate) compile: LimitDefaults,
    /// Of the run stage.
    #[serde(default)]
    pub(crate) run: LimitDefaults,
}

/// Limits that replace the general defaults for one language. Checked when parsed.
#[derive(Debug, Default, Deserialize)]
#[serde(try_from = "RawLimits")]
pub(crate) struct LimitDefaults(RawLimits);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLimits {
    wall_time: Option<Time>,
    cpu_time: Option<Time>,
    memory: Option<Size>,
    cpus: Option<f64>,
    pids: Option<u32>,
    disk: Option<Size>,
    output: Option<Size>,
    open_files: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Time(Duration);

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "String")]
struct Size(ByteSize);

impl LimitDefaults {
    /// Replaces every limit that the request did not set by the recipe's default.
    pub(crate) fn fill(&self, limits: &Limits) -> Limits {
        self.0.fill(limits).expect("the values were checked when the recipe was parsed")
    }
}

impl RawLimits {
    fn fill(&self, limits: &Limits) -> Result<Limits, InvalidLimit> {
        let mut filled = limits.clone();
        let open = |protection| !limits.is_requested(protection);
        if let Some(Time(time)) = self.wall_time.filter(|_| open(Protection::WallTime)) {
            filled = filled.with_wall_time(time)?;
        }
        if let Some(Time(time)) = self.cpu_time.filter(|_| open(Protection::CpuTime)) {
            filled = filled.with_cpu_time(time)?;
        }
        if let Some(Size(memory)) = self.memory.filter(|_| open(Protection::Memory)) {
            filled = filled.with_memory(memory)?;
        }
        if let Some(cpus) = self.cpus.filter(|_| open(Protection::Cpu)) {
            filled = filled.with_cpus(cpus)?;
        }
        if let Some(pids) = self.pids.filter(|_| open(Protection::Pids)) {
            filled = filled.with_pids(pids)?;
        }
        if let Some(Size(disk)) = self.disk.filter(|_| open(Protection::Disk)) {
            filled = filled.with_disk(disk)?;
        }
        if let Some(Size(output)) = self.output.filter(|_| open(Protection::Output)) {
            filled = filled.with_output(output)?;
        }
        if let Some(files) = self.open_files.filter(|_| open(Protection::OpenFiles)) {
            filled = filled.with_open_files(files)?;
        }
        Ok(filled.requested_like(limits))
    }
}

impl TryFrom<RawLimits> for LimitDefaults {
    type Error = InvalidLimit;

    fn try_from(raw: RawLimits) -> Result<Self, Self::Error> {
        raw.fill(&Limits::run())?;
        Ok(Self(raw))
    }
}

impl TryFrom<String> for Time {
    type Error = sandbox_core::InvalidDuration;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        parse_duration(&text).map(Self)
    }
}

impl TryFrom<String> for Size {
    type Error = sandbox_core::InvalidSize;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_fills_only_limits_that_the_request_did_not_set() {
        let defaults: LimitDefaults =
            toml::from_str("memory = \"512M\"\npids = 128\nwall_time = \"3s\"").unwrap();
        let asked = Limits::run().with_memory(ByteSize::mib(64)).unwrap();
        let filled = defaults.fill(&asked);
        assert_eq!(filled.memory(), ByteSize::mib(64));
        assert_eq!(filled.pids(), 128);
        assert_eq!(filled.wall_time(), Duration::from_secs(3));
        assert_eq!(filled.open_files(), Limits::run().open_files());
        assert!(!filled.is_requested(Protection::Pids), "nobody asked for it");
    }

    #[test]
    fn impossible_limits_are_refused_when_read() {
        for text in
            ["memory = \"1\"", "pids = 0", "wall_time = \"soon\"", "cpus = -1.0", "colour = 1"]
        {
            assert!(toml::from_str::<LimitDefaults>(text).is_err(), "{text} was accepted");
        }
    }
}
