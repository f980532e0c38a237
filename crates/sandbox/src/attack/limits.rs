use sandbox_core::{Limits, NetworkPolicy, parse_duration};

/// What an attack is given.
#[derive(Clone, Debug)]
pub(super) struct AttackLimits {
    pub(super) run: Limits,
    pub(super) compile: Limits,
    pub(super) network: NetworkPolicy,
}

impl Default for AttackLimits {
    fn default() -> Self {
        Self { run: Limits::run(), compile: Limits::compile(), network: NetworkPolicy::None }
    }
}

impl AttackLimits {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut limits = Self::default();
        for pair in text.split_whitespace() {
            let set = match pair.split_once('=') {
                Some((name, value)) => limits.set(name, value),
                None => Err("it is not 'name=value'".into()),
            };
            set.map_err(|error| format!("'{pair}': {error}"))?;
        }
        Ok(limits)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Box<dyn std::error::Error>> {
        let (run, compile) = (self.run.clone(), self.compile.clone());
        match name {
            "memory" => self.run = run.with_memory(value.parse()?)?,
            "pids" => self.run = run.with_pids(value.parse()?)?,
            "disk" => self.run = run.with_disk(value.parse()?)?,
            "cpus" => self.run = run.with_cpus(value.parse()?)?,
            "timeout" => self.run = run.with_wall_time(parse_duration(value)?)?,
            "cpu-time" => self.run = run.with_cpu_time(parse_duration(value)?)?,
            "open-files" => self.run = run.with_open_files(value.parse()?)?,
            "network" => self.network = value.parse()?,
            "compile-memory" => self.compile = compile.with_memory(value.parse()?)?,
            "compile-timeout" => self.compile = compile.with_wall_time(parse_duration(value)?)?,
            // What a compiler prints is output too.
            "output" => {
                self.run = run.with_output(value.parse()?)?;
                self.compile = compile.with_output(value.parse()?)?;
            }
            _ => return Err("there is no such limit".into()),
        }
        Ok(())
    }
}
