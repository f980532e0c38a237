//! What became of everything that a program tried to reach.

use serde::{Deserialize, Serialize};

/// What was decided about a connection, a datagram or a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It was let through.
    Allowed,
    /// No rule allows it, or a limit was reached.
    Refused,
    /// It was allowed, and could not be reached.
    Failed,
}

/// How something is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A connection.
    Tcp,
    /// A datagram.
    Udp,
}

/// Connections to one place that ended alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// The name that it was looked up by, or else the address.
    pub host: String,
    /// The address.
    pub address: String,
    /// The port.
    pub port: u16,
    /// How.
    pub transport: Transport,
    /// What was decided.
    pub decision: Decision,
    /// Why, if it was not let through.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many there were.
    pub count: u64,
    /// Bytes that came in.
    pub bytes_in: u64,
    /// Bytes that went out.
    pub bytes_out: u64,
}

/// Questions for one name that were answered alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionRecord {
    /// The name.
    pub name: String,
    /// What was asked of it: `A`, `AAAA`.
    pub kind: String,
    /// What was decided.
    pub decision: Decision,
    /// Why, if it was not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The addresses that were told.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// How many there were.
    pub count: u64,
}

/// Everything that a program tried to reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkReport {
    /// Connections and datagrams, by place and decision.
    pub connections: Vec<ConnectionRecord>,
    /// Questions for names.
    pub dns: Vec<QuestionRecord>,
    /// Whether there was more than is told here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// One decision, as it is made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NetworkEvent {
    /// About a connection or a datagram.
    Connection {
        /// The name that it was looked up by, or else the address.
        host: String,
        /// The address.
        address: String,
        /// The port.
        port: u16,
        /// How.
        transport: Transport,
        /// What was decided.
        decision: Decision,
        /// Why, if it was not let through.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// About a question for a name.
    Question {
        /// The name.
        name: String,
        /// What was asked of it.
        kind: String,
        /// What was decided.
        decision: Decision,
        /// Why, if it was not answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The addresses that were told.
        addresses: Vec<String>,
    },
}
