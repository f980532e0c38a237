//! Connections and DNS queries of a program, and the decisions about them.

use serde::{Deserialize, Serialize};

/// The decision about a connection, a datagram or a DNS query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It was allowed.
    Allowed,
    /// No rule allows it, or a limit was exceeded.
    Refused,
    /// It was allowed, and failed.
    Failed,
}

/// The transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A connection.
    Tcp,
    /// A datagram.
    Udp,
}

/// Connections to one destination with the same outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    /// The name that the program resolved to get the address, or the address.
    pub host: String,
    /// The address.
    pub address: String,
    /// The port.
    pub port: u16,
    /// The transport protocol.
    pub transport: Transport,
    /// The decision.
    pub decision: Decision,
    /// Why it was not allowed or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Number of connections.
    pub count: u64,
    /// Bytes received.
    pub bytes_in: u64,
    /// Bytes sent.
    pub bytes_out: u64,
}

/// DNS queries for one name with the same outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DnsQueryRecord {
    /// The name.
    pub name: String,
    /// The record type: `A`, `AAAA`.
    pub kind: String,
    /// The decision.
    pub decision: Decision,
    /// Why it was not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The addresses in the answer.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Number of queries.
    pub count: u64,
}

/// All connections and DNS queries of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkReport {
    /// Connections and datagrams, by destination and decision.
    pub connections: Vec<ConnectionRecord>,
    /// DNS queries.
    pub dns: Vec<DnsQueryRecord>,
    /// Whether the lists are incomplete because there were too many entries.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
}

/// One decision, reported immediately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum NetworkEvent {
    /// A connection or a datagram.
    Connection {
        /// The name that the program resolved to get the address, or the address.
        host: String,
        /// The address.
        address: String,
        /// The port.
        port: u16,
        /// The transport protocol.
        transport: Transport,
        /// The decision.
        decision: Decision,
        /// Why it was not allowed or failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A DNS query.
    Question {
        /// The name.
        name: String,
        /// The record type.
        kind: String,
        /// The decision.
        decision: Decision,
        /// Why it was not answered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The addresses in the answer.
        addresses: Vec<String>,
    },
}
