use sandbox::{ByteSize, with_causes};
use sandbox_store::StoreError;

/// Why the scheduler refused or failed an operation. The messages are for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchedulerError {
    /// The server accepts nothing any more.
    #[error("the server is stopping")]
    Stopping,
    /// The client has reached its maximum of unfinished executions.
    #[error("this client has reached its maximum of {max} unfinished executions")]
    TooManyUnfinished {
        /// The maximum.
        max: usize,
    },
    /// The client's waiting requests would exceed its maximum size.
    #[error("the waiting requests of this client would exceed their maximum of {max}")]
    TooManyWaitingBytesOfClient {
        /// The maximum.
        max: ByteSize,
    },
    /// All waiting requests together would exceed their maximum size.
    #[error("the waiting requests of all clients would exceed their maximum of {max}")]
    TooManyWaitingBytes {
        /// The maximum.
        max: ByteSize,
    },
    /// The maximum of waiting executions is reached.
    #[error("the maximum of {max} waiting executions is reached")]
    QueueFull {
        /// The maximum.
        max: usize,
    },
    /// Another execution may write to the same workspace.
    #[error(
        "workspace: '{name}' is in use by {by}, which is not finished: wait for its end, or ask for '{name}:ro'"
    )]
    WorkspaceInUse {
        /// The name of the workspace.
        name: String,
        /// The id of the other execution.
        by: String,
    },
    /// The requested memory limit exceeds what the client can have.
    #[error("{needed} exceeds the {max} that one client of this server can use")]
    MemoryLimitTooLarge {
        /// The memory limit.
        needed: ByteSize,
        /// The maximum.
        max: ByteSize,
    },
    /// The language's own memory limit, such as that of its compile stage, exceeds what the client can have.
    #[error(
        "compiling or running {language} may use {needed}, which exceeds the {max} that one client of this server can use"
    )]
    LanguageNeedsTooMuchMemory {
        /// The name of the language.
        language: String,
        /// The memory limit of the language.
        needed: ByteSize,
        /// The maximum.
        max: ByteSize,
    },
    /// The idempotency key was used before for a different request.
    #[error("this Idempotency-Key was used for another request")]
    IdempotencyConflict,
    /// The execution does not exist, or belongs to another client. Which of the two is not revealed.
    #[error("there is no execution '{}'", .0.escape_debug())]
    NotFound(String),
    /// The cursor of a listing is invalid.
    #[error("cursor: {}", StoreError::InvalidCursor)]
    InvalidCursor,
    /// The execution cannot be stored, so its id is not valid.
    #[error("failed to store the execution")]
    NotStored,
    /// The store failed. The log has the cause.
    #[error("database unavailable")]
    Store,
    /// A bug in the server. The log has the panic.
    #[error("internal error")]
    Internal,
}

impl From<StoreError> for SchedulerError {
    /// Logs the cause, which is not for clients.
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::InvalidCursor) {
            return Self::InvalidCursor;
        }
        tracing::error!(error = with_causes(&error), "store operation failed");
        Self::Store
    }
}
