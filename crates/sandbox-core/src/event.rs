use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::ser::{SerializeMap, Serializer};
use serde::{Deserialize, Serialize};

use crate::{NetworkEvent, Report, Stage, StreamKind};

/// Something that happened in an execution. Events are numbered from 1 without gaps.
#[derive(Clone, Debug)]
pub struct Event {
    /// Sequence number.
    pub seq: u64,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// The execution was accepted.
    Queued,
    /// Progress of one-time preparation, such as installing packages, that later executions reuse.
    Progress(String),
    /// A stage began.
    Stage(Stage),
    /// The program wrote these bytes.
    Output(StreamKind, Vec<u8>),
    /// A sample of resource usage.
    Usage(UsageSample),
    /// The decision about a network connection or a DNS query.
    Network(NetworkEvent),
    /// The execution has finished; this is its report.
    Report(Box<Report>),
}

/// Resource usage of a running program at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageSample {
    /// CPU time so far, in milliseconds.
    pub cpu_ms: u64,
    /// Memory in use, in KiB.
    pub memory_kb: u64,
    /// Processes and threads in existence.
    pub processes: u64,
    /// Bytes read so far.
    pub io_read_bytes: u64,
    /// Bytes written so far.
    pub io_write_bytes: u64,
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("seq", &self.seq)?;
        map.serialize_entry("type", self.kind.name())?;
        match &self.kind {
            EventKind::Queued => {}
            EventKind::Progress(message) => map.serialize_entry("message", message)?,
            EventKind::Stage(stage) => map.serialize_entry("stage", stage)?,
            EventKind::Output(_, bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => map.serialize_entry("data", text)?,
                Err(_) => map.serialize_entry("data_base64", &STANDARD.encode(bytes))?,
            },
            EventKind::Usage(sample) => {
                map.serialize_entry("cpu_ms", &sample.cpu_ms)?;
                map.serialize_entry("memory_kb", &sample.memory_kb)?;
                map.serialize_entry("processes", &sample.processes)?;
                map.serialize_entry("io_read_bytes", &sample.io_read_bytes)?;
                map.serialize_entry("io_write_bytes", &sample.io_write_bytes)?;
            }
            EventKind::Network(event) => map.serialize_entry("network", event)?,
            EventKind::Report(report) => map.serialize_entry("report", report)?,
        }
        map.end()
    }
}

impl EventKind {
    /// The value of the event's `type` field.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Progress(_) => "progress",
            Self::Stage(_) => "stage",
            Self::Output(StreamKind::Stdout, _) => "stdout",
            Self::Output(StreamKind::Stderr, _) => "stderr",
            Self::Usage(_) => "usage",
            Self::Network(_) => "network",
            Self::Report(_) => "report",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_that_is_no_text_travels_as_base64() {
        let event = |bytes: &[u8]| {
            let kind = EventKind::Output(StreamKind::Stderr, bytes.to_vec());
            serde_json::to_string(&Event { seq: 7, kind }).unwrap()
        };
        assert_eq!(event(b"hi\n"), r#"{"seq":7,"type":"stderr","data":"hi\n"}"#);
        assert_eq!(event(b"\xff"), r#"{"seq":7,"type":"stderr","data_base64":"/w=="}"#);
    }

    #[test]
    fn samples_lie_flat_in_the_event() {
        let sample = UsageSample {
            cpu_ms: 1,
            memory_kb: 2,
            processes: 3,
            io_read_bytes: 4,
            io_write_bytes: 5,
        };
        let text =
            serde_json::to_string(&Event { seq: 1, kind: EventKind::Usage(sample) }).unwrap();
        assert_eq!(
            text,
            r#"{"seq":1,"type":"usage","cpu_ms":1,"memory_kb":2,"processes":3,"io_read_bytes":4,"io_write_bytes":5}"#
        );
    }
}
