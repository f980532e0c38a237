//! Parses the events of the HTTP API into those of the library.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sandbox::{Event, EventKind, NetworkEvent, Report, Stage, StreamKind, UsageSample};
use sandbox_api::Problem;
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
    /// Of a newer server: of no use here.
    #[serde(other)]
    Unknown,
}

#[derive(Deserialize)]
struct Data {
    data: Option<String>,
    data_base64: Option<String>,
}

/// What one message says.
#[derive(Debug)]
pub(crate) enum StreamMessage {
    Event(Event),
    /// The server cannot tell more now. What it told stands.
    Failed(Problem),
    /// Something that this program does not know, with its number.
    Unknown(u64),
}

/// A message that is no event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvalidEvent {
    #[error("the server sent an event that cannot be read")]
    Json(#[from] serde_json::Error),
    #[error("the server sent output that cannot be read")]
    Base64(#[from] base64::DecodeError),
}

/// Reads one event.
pub(crate) fn read(text: &str) -> Result<StreamMessage, InvalidEvent> {
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
    use crate::output::fixtures;
    use sandbox_api::Code;

    #[test]
    fn every_event_reads_back_as_it_was_written() {
        let sample = UsageSample {
            cpu_ms: 1,
            memory_kb: 2,
            processes: 3,
            io_read_bytes: 4,
            io_write_bytes: 5,
        };
        let mut report = fixtures::report();
        report.missing = vec![sandbox::Protection::Landlock];
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
            let StreamMessage::Event(event) = read(&text).unwrap() else {
                panic!("no event: {text}")
            };
            assert_eq!(serde_json::to_string(&event).unwrap(), text);
        }
    }

    #[test]
    fn what_is_new_is_passed_over_and_what_is_wrong_is_not() {
        assert!(matches!(
            read(r#"{"seq":9,"type":"colour","x":1}"#),
            Ok(StreamMessage::Unknown(9))
        ));
        let problem = serde_json::to_string(&Problem::new(Code::Internal, "no")).unwrap();
        let failed = read(&format!(r#"{{"type":"error","problem":{problem}}}"#));
        assert!(matches!(failed, Ok(StreamMessage::Failed(problem)) if problem.detail == "no"));
        for text in [
            "",
            "{}",
            r#"{"seq":1}"#,
            r#"{"seq":-1,"type":"queued"}"#,
            r#"{"seq":1,"type":"stdout","data_base64":"?"}"#,
            r#"{"seq":1,"type":"report","report":{}}"#,
        ] {
            assert!(read(text).is_err(), "{text:?} was taken");
        }
    }
}
