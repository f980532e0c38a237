use chrono::{DateTime, Utc};

/// Where the report of an execution goes when it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCallback {
    /// Where to.
    pub url: String,
    /// The host in it.
    pub host: String,
}

/// A report that is there and has not arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueCallback {
    /// Whose report it is.
    pub execution: String,
    /// The key of the client that asked for it.
    pub owner: Option<String>,
    /// Where to.
    pub url: String,
    /// The host in it.
    pub host: String,
    /// How often it was tried in vain.
    pub tries: u32,
}

/// Whose callbacks are not wanted now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// None to these hosts.
    pub hosts: Vec<String>,
    /// None of these owners; `None` is the client without a key.
    pub owners: Vec<Option<String>>,
}

/// What follows from a try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallbackEnd {
    /// Nothing: it arrived, or is given up.
    Over,
    /// Another try, not before this moment.
    Again(DateTime<Utc>),
}
