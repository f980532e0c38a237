use sandbox_core::{ExecutionId, Report, Request, StagePlan, StageReport};

/// Called at each step of an execution. A hook can observe, and can refuse before a step begins.
///
/// Hooks run on the thread of the execution; parallel executions call them concurrently.
pub trait Hooks: Send + Sync {
    /// Called when a request arrives, before anything is done for it.
    fn on_request(&self, request: &Request) -> Result<(), Refusal> {
        let _ = request;
        Ok(())
    }

    /// Called before a stage, with its exact plan.
    fn before_stage(&self, execution: ExecutionId, plan: &StagePlan) -> Result<(), Refusal> {
        let _ = (execution, plan);
        Ok(())
    }

    /// Called after a stage.
    fn after_stage(&self, execution: ExecutionId, stage: &StageReport) {
        let _ = (execution, stage);
    }

    /// Called with the report at the end.
    fn on_report(&self, report: &Report) {
        let _ = report;
    }
}

/// A hook's refusal of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    reason: String,
}

impl Refusal {
    /// Refuses with a reason, which the client sees.
    pub fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}
