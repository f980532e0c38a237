use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not served, by RFC 9457.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Problem {
    /// A name for this kind of problem, for programs.
    pub code: Code,
    /// The HTTP status.
    pub status: u16,
    /// The kind of problem in a few words.
    pub title: String,
    /// This problem in a sentence, for people.
    pub detail: String,
    /// The request, as it is called in the server's log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// Kinds of problems. Names are never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The body is not JSON, or not such JSON.
    InvalidBody,
    /// A field has a value it cannot have.
    InvalidField,
    /// No recipe has this name.
    UnknownLanguage,
    /// The language is known, and its toolchain is not on this host.
    LanguageUnavailable,
    /// The body or the code is larger than the server takes.
    CodeTooLarge,
    /// A key is needed, or this one is not valid.
    Unauthorized,
    /// The key may not do this.
    Forbidden,
    /// The operator has not permitted this feature to the client.
    NotPermitted,
    /// There is no such thing, or it is not yours.
    NotFound,
    /// The path is there, and not for this method.
    MethodNotAllowed,
    /// The idempotency key was used for another request.
    IdempotencyConflict,
    /// There is one of this name already.
    AlreadyExists,
    /// The client has as many environments as it may have.
    TooManyEnvironments,
    /// The package manager does not install these.
    PackagesRefused,
    /// Another execution writes to the workspace.
    WorkspaceInUse,
    /// The client has as many workspaces as it may have.
    WorkspaceLimit,
    /// Too many requests from one client.
    RateLimited,
    /// The client has as many executions as it may have.
    QuotaExceeded,
    /// As many wait as may wait.
    QueueFull,
    /// The server cannot do this now.
    Unavailable,
    /// A failure of ours.
    Internal,
}

impl Code {
    /// The HTTP status that goes with it.
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

    /// The kind in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::InvalidBody => "The body cannot be read",
            Self::InvalidField => "A field is not valid",
            Self::UnknownLanguage => "There is no such language",
            Self::LanguageUnavailable => "The language is not installed",
            Self::CodeTooLarge => "The request is too large",
            Self::Unauthorized => "A valid key is needed",
            Self::Forbidden => "The key does not allow this",
            Self::NotPermitted => "Feature not permitted",
            Self::NotFound => "There is no such thing",
            Self::MethodNotAllowed => "Not by this method",
            Self::IdempotencyConflict => "The idempotency key was used before",
            Self::AlreadyExists => "The name is taken",
            Self::TooManyEnvironments => "Too many environments",
            Self::PackagesRefused => "The packages cannot be installed",
            Self::WorkspaceInUse => "The workspace is in use",
            Self::WorkspaceLimit => "Too many workspaces",
            Self::RateLimited => "Too many requests",
            Self::QuotaExceeded => "Too many executions at once",
            Self::QueueFull => "The queue is full",
            Self::Unavailable => "Not now",
            Self::Internal => "A failure of the server",
        }
    }
}

impl Problem {
    /// A problem of this kind, told in a sentence.
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
