use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request failed (RFC 9457).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// The machine-readable kind of problem. Stable.
    pub code: Code,
    /// The HTTP status code.
    pub status: u16,
    /// The kind of problem, in a few words.
    pub title: String,
    /// What failed in this request, for humans.
    pub detail: String,
    /// The id of the request in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// The kinds of problems. Their names never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The body is not JSON, or does not match the schema.
    InvalidBody,
    /// A field has an invalid value.
    InvalidField,
    /// No language has this name.
    UnknownLanguage,
    /// The language is known, but its toolchain is not installed on the server.
    LanguageUnavailable,
    /// The body, the code or an archive exceeds the server's maximum size.
    CodeTooLarge,
    /// The API key is missing or invalid.
    Unauthorized,
    /// The scopes of the API key do not allow this operation.
    Forbidden,
    /// The operator has not permitted this feature for the client.
    NotPermitted,
    /// The resource does not exist, or belongs to another client.
    NotFound,
    /// The path does not support this method.
    MethodNotAllowed,
    /// The idempotency key was already used for a different request.
    IdempotencyConflict,
    /// A resource of this name already exists.
    AlreadyExists,
    /// The client has reached its maximum number of environments.
    TooManyEnvironments,
    /// The package manager cannot install these packages.
    PackagesRefused,
    /// Another execution is writing to the workspace.
    WorkspaceInUse,
    /// The client has reached its maximum number of workspaces.
    WorkspaceLimit,
    /// The client sends requests faster than the rate limit.
    RateLimited,
    /// The client has reached its maximum of unfinished executions, waiting bytes or workspace imports.
    QuotaExceeded,
    /// The server has reached its maximum of waiting executions, waiting bytes or workspace imports.
    QueueFull,
    /// The server cannot serve the request now.
    Unavailable,
    /// An internal error of the server.
    Internal,
}

impl Code {
    /// The HTTP status code of this kind.
    pub fn status(self) -> u16 {
        match self {
            Self::InvalidBody | Self::InvalidField | Self::UnknownLanguage => 400,
            Self::Unauthorized => 401,
            Self::Forbidden | Self::NotPermitted => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::IdempotencyConflict
            | Self::AlreadyExists
            | Self::TooManyEnvironments
            | Self::WorkspaceInUse
            | Self::WorkspaceLimit => 409,
            Self::CodeTooLarge => 413,
            Self::LanguageUnavailable | Self::PackagesRefused => 422,
            Self::RateLimited | Self::QuotaExceeded => 429,
            Self::Internal => 500,
            Self::QueueFull | Self::Unavailable => 503,
        }
    }

    /// The kind, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::InvalidBody => "Invalid request body",
            Self::InvalidField => "Invalid field",
            Self::UnknownLanguage => "Unknown language",
            Self::LanguageUnavailable => "Language not installed",
            Self::CodeTooLarge => "Request too large",
            Self::Unauthorized => "Valid API key required",
            Self::Forbidden => "Insufficient scope",
            Self::NotPermitted => "Feature not permitted",
            Self::NotFound => "Not found",
            Self::MethodNotAllowed => "Method not allowed",
            Self::IdempotencyConflict => "Idempotency key already used",
            Self::AlreadyExists => "Name already exists",
            Self::TooManyEnvironments => "Too many environments",
            Self::PackagesRefused => "Packages cannot be installed",
            Self::WorkspaceInUse => "Workspace in use",
            Self::WorkspaceLimit => "Too many workspaces",
            Self::RateLimited => "Too many requests",
            Self::QuotaExceeded => "Quota exceeded",
            Self::QueueFull => "Queue full",
            Self::Unavailable => "Service unavailable",
            Self::Internal => "Internal error",
        }
    }
}

impl Problem {
    /// Creates a problem of this kind with this explanation.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            code,
            status: code.status(),
            title: code.title().to_owned(),
            detail: detail.into(),
            request_id: None,
        }
    }
}
