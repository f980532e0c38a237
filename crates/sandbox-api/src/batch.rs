use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Accepted, ExecuteRequest, Problem, Report};

/// Independent requests to run code.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// The requests.
    #[schema(min_items = 1, max_items = 100)]
    pub requests: Vec<ExecuteRequest>,
}

/// The result of one request of a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum BatchReport {
    /// The execution's report.
    Report(Box<Report>),
    /// Why there is no execution.
    Problem(Problem),
}

/// The id of one execution of a batch, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum BatchTicket {
    /// The accepted execution.
    Accepted(Accepted),
    /// Why there is no execution.
    Problem(Problem),
}
