use sandbox_core::{ExecutionId, Report, Request, StagePlan, StageReport};

/// Called at each step of an execution; may look, and may refuse before a step begins.
///
/// Hooks are called on the thread of the execution, several at once when executions run in parallel.
pub trait Hooks: Send + Sync {
    /// A request came in; nothing was done for it yet.
    fn on_request(&self, request: &Request) -> Result<(), Refusal> {
        let _ = request;
        Ok(())
    }

    /// A stage is about to begin, exactly as this plan says.
    fn before_stage(&self, execution: ExecutionId, plan: &StagePlan) -> Result<(), Refusal> {
        let _ = (execution, plan);
        Ok(())
    }

    /// A stage ended.
    fn after_stage(&self, execution: ExecutionId, stage: &StageReport) {
        let _ = (execution, stage);
    }

    /// The execution is over.
    fn on_report(&self, report: &Report) {
        let _ = report;
    }
}

/// The answer of a hook that wants an execution not to go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    reason: String,
}

impl Refusal {
    /// Refuses, with a reason that the requester is told.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
