//! Parses the events of the HTTP API into those of the library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandbox_api::Problem;
use sandbox_core::{Event, EventKind, NetworkEvent, Report, Stage, StreamKind, UsageSample};
use serde::Deserialize;

#[derive(Deserialize)]
struct Numbered {
    /// Failures of the server have none.
    #[serde(default)]
    seq: u64,
    #[serde(flatten)]
    wire: Wire,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Wire {
    Queued,
    Progress {
        message: String,
    },
    Stage {
        stage: Stage,
    },
    Stdout(Data),
    Stderr(Data),
    Usage(UsageSample),
    Network {
        network: NetworkEvent,
    },
    Report {
        report: Box<Report>,
    },
    Error {
        problem: Problem,
    },
    /// Of a newer server.
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Data {
    data: Option<String>,
    data_base64: Option<String>,
}

/// A message of a stream of events.
#[derive(Debug)]
pub enum StreamMessage {
    /// An event.
    Event(Event),
    /// The server cannot send further events now. Those it sent stand.
    Failed(Problem),
    /// An event of a type that this client does not know, with its number.
    Unknown(u64),
}

/// A message that is not an event.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidEvent {
    /// It is not JSON, or not of the schema.
    #[error("the server sent an event that cannot be read")]
    Json(#[from] serde_json::Error),
    /// Its output is not base64.
    #[error("the server sent output that cannot be read")]
    Base64(#[from] base64::DecodeError),
}

/// Parses one event.
pub fn parse_event(text: &str) -> Result<StreamMessage, InvalidEvent> {
    let Numbered { seq, wire } = serde_json::from_str(text)?;
    let kind = match wire {
        Wire::Queued => EventKind::Queued,
        Wire::Progress { message } => EventKind::Progress(message),
        Wire::Stage { stage } => EventKind::Stage(stage),
        Wire::Stdout(data) => EventKind::Output(StreamKind::Stdout, data.bytes()?),
        Wire::Stderr(data) => EventKind::Output(StreamKind::Stderr, data.bytes()?),
        Wire::Usage(sample) => EventKind::Usage(sample),
        Wire::Network { network } => EventKind::Network(network),
        Wire::Report { report } => EventKind::Report(report),
        Wire::Error { problem } => return Ok(StreamMessage::Failed(problem)),
        Wire::Unknown => return Ok(StreamMessage::Unknown(seq)),
    };
    Ok(StreamMessage::Event(Event { seq, kind }))
}

impl Data {
    fn bytes(self) -> Result<Vec<u8>, base64::DecodeError> {
        match (self.data_base64, self.data) {
            (Some(encoded), _) => STANDARD.decode(encoded),
            (None, text) => Ok(text.unwrap_or_default().into_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sandbox_api::Code;
    use sandbox_core::{ExecutionId, Protection, Report};
    use serde_json::json;

    #[test]
    fn every_event_parses_back_to_itself() {
        let sample = UsageSample {
            cpu_ms: 1,
            memory_kb: 2,
            processes: 3,
            io_read_bytes: 4,
            io_write_bytes: 5,
        };
        let mut report: Report = serde_json::from_value(json!({
            "id": ExecutionId::generate(), "status": "completed", "stage": "run", "success": true,
            "language": "python", "version": "3.11", "isolation": "native", "stdout": "", "stderr": "",
            "output": "", "stdout_truncated": false, "stderr_truncated": false, "error": null, "exit_code": 0,
            "signal": null, "execution_time_ms": 1.0, "cpu_time_ms": 1.0, "memory_used_kb": 1,
            "memory_used_mb": 1, "stages": [], "output_files": [], "enforced": [], "violations": [],
            "timings_ms": {"queue": 0.0, "prepare": 0.0, "compile": 0.0, "run": 0.0, "collect": 0.0},
            "created_at": "2026-01-01T00:00:00Z",
        }))
        .unwrap();
        report.missing = vec![Protection::Landlock];
        report.stdout_base64 = Some("/w==".into());
        let kinds = [
            EventKind::Queued,
            EventKind::Progress("preparing".into()),
            EventKind::Stage(Stage::Compile),
            EventKind::Output(StreamKind::Stdout, b"text\n".to_vec()),
            EventKind::Output(StreamKind::Stderr, vec![0xff]),
            EventKind::Usage(sample),
            EventKind::Report(Box::new(report)),
        ];
        for (seq, kind) in (1..).zip(kinds) {
            let text = serde_json::to_string(&Event { seq, kind }).unwrap();
            let StreamMessage::Event(event) = parse_event(&text).unwrap() else {
                panic!("no event: {text}")
            };
            assert_eq!(serde_json::to_string(&event).unwrap(), text);
        }
    }

    #[test]
    fn unknown_events_are_accepted_and_invalid_ones_are_not() {
        assert!(matches!(
            parse_event(r#"{"seq":9,"type":"colour","x":1}"#),
            Ok(StreamMessage::Unknown(9))
        ));
        let problem = serde_json::to_string(&Problem::new(Code::Internal, "no")).unwrap();
        let failed = parse_event(&format!(r#"{{"type":"error","problem":{problem}}}"#));
        assert!(matches!(failed, Ok(StreamMessage::Failed(problem)) if problem.detail == "no"));
        for text in [
            "",
            "{}",
            r#"{"seq":1}"#,
            r#"{"seq":-1,"type":"queued"}"#,
            r#"{"seq":1,"type":"stdout","data_base64":"?"}"#,
            r#"{"seq":1,"type":"report","report":{}}"#,
        ] {
            assert!(parse_event(text).is_err(), "{text:?} was accepted");
        }
    }
}
