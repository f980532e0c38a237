//! Runs attacks in a sandbox, against canaries on the host.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use sandbox_core::{PoolStats, Protection, Report, Request, Status, with_causes};

use super::canaries::{Canaries, CanaryError};
use super::entries::HeaderError;
use super::judge::{self, Verdict};
use super::list::{Attack, Program};
use super::result::{AttackResult, Outcome};

use crate::{ExecuteError, Sandbox, SandboxBuilder, StartError};

/// Why no attack could be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttackError {
    /// The header of an attack is invalid.
    #[error("an attack cannot be read")]
    Header(#[from] HeaderError),
    /// The canaries cannot be set up.
    #[error(transparent)]
    Canary(#[from] CanaryError),
    /// The sandbox cannot be started.
    #[error("no sandbox can be started")]
    Start(#[from] StartError),
}

/// Runs attacks. Dropping it removes the canaries from the host.
pub struct AttackHarness {
    protected: Sandbox,
    canaries: Canaries,
}

/// Why a run has no report to judge.
enum NoReport {
    Skipped(String),
    Failed(String),
}

impl AttackHarness {
    /// Sets up the canaries and a sandbox with every protection.
    pub fn new() -> Result<Self, AttackError> {
        Self::with(Sandbox::builder())
    }

    /// Sets up the canaries and a sandbox with these settings.
    pub fn with(builder: SandboxBuilder) -> Result<Self, AttackError> {
        let runtimes = crate::Runtimes::load(None).map_err(StartError::from)?;
        let python: Option<PathBuf> = "python"
            .parse()
            .ok()
            .and_then(|python| runtimes.resolve(&python).ok())
            .map(|runtime| runtime.program().to_owned());
        let canaries = Canaries::set_up(python.as_deref())?;
        // An attacked compiler must run even if the attack was compiled before.
        let protected = builder.without_compile_cache().build()?;
        Ok(Self { protected, canaries })
    }

    /// Runs an attack with every protection enabled: it must be contained. Skips an attack whose own protections are missing
    /// on this host.
    pub fn try_protected(&self, attack: &Attack) -> AttackResult {
        match lacking(&self.protected, attack) {
            Some(reason) => result(attack, (Outcome::Skipped, reason)),
            None => self.try_best_effort(attack),
        }
    }

    /// Runs an attack even if its own protections are missing on this host: others can contain it.
    pub fn try_best_effort(&self, attack: &Attack) -> AttackResult {
        let verdict = match self.run(&self.protected, attack) {
            Ok(reports) => judge::protected(&attack.header, &reports, self.canaries.secrets()),
            Err(none) => none.verdict(),
        };
        result(attack, verdict)
    }

    /// State of the pool of the sandbox with every protection, which shows how an attack was started.
    pub fn pool(&self) -> Option<PoolStats> {
        self.protected.pool()
    }

    /// Runs an attack with its own protections disabled: it must be a breach. Skips an attack that names none.
    pub fn try_unprotected(&self, attack: &Attack) -> Result<AttackResult, StartError> {
        let header = &attack.header;
        if attack.protections().is_empty() {
            let reason = "no single protection can be disabled for it";
            return Ok(result(attack, (Outcome::Skipped, reason.into())));
        }
        if header.root_only && !is_root() {
            let reason = "only root can disable this protection";
            return Ok(result(attack, (Outcome::Skipped, reason.into())));
        }
        let mut builder = Sandbox::builder().spare_slots(0);
        for protection in attack.protections() {
            builder = builder.without(*protection);
        }
        let sandbox = builder.build()?;
        if let Some(reason) = lacking(&sandbox, attack) {
            return Ok(result(attack, (Outcome::Skipped, reason)));
        }
        let secret = self.canaries.host_secret();
        let verdict = match self.run(&sandbox, attack) {
            Ok(reports) => match reports.last() {
                Some(report) => judge::without(header, report, secret),
                None => (Outcome::Unclear, "nothing ran".into()),
            },
            Err(none) => none.verdict(),
        };
        // The host can lack what the attack needs; then the run proves nothing.
        let verdict = match (&verdict, &header.optional) {
            ((Outcome::Contained, words), Some(why)) => {
                (Outcome::Skipped, format!("{words}: {why}"))
            }
            _ => verdict,
        };
        Ok(result(attack, verdict))
    }

    /// Runs the programs of an attack one after the other.
    fn run(&self, sandbox: &Sandbox, attack: &Attack) -> Result<Vec<Report>, NoReport> {
        for placeholder in attack.placeholders() {
            if let Some(reason) = self.canaries.missing(placeholder) {
                return Err(NoReport::Skipped(reason.to_owned()));
            }
        }
        let missing = sandbox.capabilities().missing.iter();
        let can_miss: Vec<_> = missing.map(|missing| missing.protection).collect();
        let mut reports = Vec::new();
        for program in std::iter::once(&attack.program).chain(&attack.then) {
            let request = self.request(sandbox, attack, program, &can_miss)?;
            let report = sandbox.execute(request)?;
            if let Some(reason) = cannot_enforce(attack, &report) {
                return Err(NoReport::Skipped(reason));
            }
            reports.push(report);
        }
        Ok(reports)
    }

    fn request(
        &self,
        sandbox: &Sandbox,
        attack: &Attack,
        program: &Program,
        can_miss: &[Protection],
    ) -> Result<Request, NoReport> {
        let header = &attack.header;
        let language = sandbox.runtimes().language_for_file(program.file, "");
        let language = language
            .ok_or_else(|| NoReport::Failed(format!("{} is in no known language", program.file)))?;
        let source = if header.args_in_source {
            self.canaries.fill_in(program.source)
        } else {
            program.source.to_owned()
        };
        let mut request = Request::builder(language)
            .code(source)
            .stdin(header.stdin.as_str())
            .args(program.args.iter().map(|arg| self.canaries.fill_in(arg)))
            .limits(header.limits.run.clone())
            .compile_limits(header.limits.compile.clone())
            .network(header.limits.network);
        for pattern in &header.collect {
            request = request.collect(pattern);
        }
        for protection in can_miss {
            request = request.allow_missing(*protection);
        }
        request.build().map_err(|error| NoReport::Failed(error.to_string()))
    }
}

/// Why one of the attack's own protections is missing on this host, if so.
fn lacking(sandbox: &Sandbox, attack: &Attack) -> Option<String> {
    let mut all = sandbox.capabilities().missing.iter();
    let missing = all.find(|missing| attack.protections().contains(&missing.protection))?;
    Some(missing.reason.clone())
}

/// A host can support a protection but not this limit, such as a fraction of a CPU. The report then has the text of [`BackendError::CannotEnforce`].
///
/// [`BackendError::CannotEnforce`]: sandbox_core::BackendError::CannotEnforce
fn cannot_enforce(attack: &Attack, report: &Report) -> Option<String> {
    let error = report.error.as_ref().filter(|_| report.status == Status::Error)?;
    let refused = |protection: &Protection| {
        error.starts_with(&format!("this host cannot enforce '{protection}'"))
    };
    attack.protections().iter().any(refused).then(|| error.clone())
}

impl NoReport {
    fn verdict(self) -> Verdict {
        match self {
            Self::Skipped(reason) => (Outcome::Skipped, reason),
            Self::Failed(reason) => (Outcome::Unclear, reason),
        }
    }
}

impl From<ExecuteError> for NoReport {
    fn from(error: ExecuteError) -> Self {
        match error {
            ExecuteError::Language(error) => Self::Skipped(error.to_string()),
            error => Self::Failed(with_causes(&error)),
        }
    }
}

fn result(attack: &Attack, (outcome, detail): Verdict) -> AttackResult {
    let names: Vec<_> = attack.protections().iter().map(|protection| protection.name()).collect();
    AttackResult {
        name: attack.name().to_owned(),
        class: attack.class().to_owned(),
        title: attack.title().to_owned(),
        protections: if names.is_empty() { "—".to_owned() } else { names.join(", ") },
        outcome,
        detail,
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

impl std::fmt::Debug for AttackHarness {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AttackHarness").finish_non_exhaustive()
    }
}
