use sandbox_core::{
    Event, EventKind, NetworkEvent, Observer, Report, Stage, StreamKind, UsageSample,
};

/// Receives the events of an execution.
pub(crate) type Listener<'a> = &'a mut dyn FnMut(&Event);

/// Numbers the events of one execution and sends them to the listener.
///
/// A chunk of output can end in the middle of a UTF-8 character. The incomplete character is held back until its
/// remaining bytes arrive, so that each event holds whole characters.
pub(crate) struct Events<'a> {
    listener: Option<Listener<'a>>,
    count: u64,
    partial_stdout: Vec<u8>,
    partial_stderr: Vec<u8>,
}

impl<'a> Events<'a> {
    pub(crate) fn new(listener: Option<Listener<'a>>) -> Self {
        Self { listener, count: 0, partial_stdout: Vec::new(), partial_stderr: Vec::new() }
    }

    pub(crate) fn queued(&mut self) {
        self.emit(EventKind::Queued);
    }

    pub(crate) fn progress(&mut self, message: &str) {
        self.emit(EventKind::Progress(message.to_owned()));
    }

    pub(crate) fn stage_begins(&mut self, stage: Stage) {
        self.emit(EventKind::Stage(stage));
    }

    /// Sends incomplete characters that are still held back.
    pub(crate) fn stage_ended(&mut self) {
        for stream in [StreamKind::Stdout, StreamKind::Stderr] {
            let rest = std::mem::take(self.partial(stream));
            if !rest.is_empty() {
                self.emit(EventKind::Output(stream, rest));
            }
        }
    }

    /// Sends the report and returns it.
    pub(crate) fn report(&mut self, report: Report) -> Report {
        match self.emit(EventKind::Report(Box::new(report))) {
            EventKind::Report(report) => *report,
            _ => unreachable!("`emit` returns the event that it was given"),
        }
    }

    fn partial(&mut self, stream: StreamKind) -> &mut Vec<u8> {
        match stream {
            StreamKind::Stdout => &mut self.partial_stdout,
            StreamKind::Stderr => &mut self.partial_stderr,
        }
    }

    fn emit(&mut self, kind: EventKind) -> EventKind {
        self.count += 1;
        let event = Event { seq: self.count, kind };
        if let Some(listener) = &mut self.listener {
            listener(&event);
        }
        event.kind
    }
}

impl Observer for Events<'_> {
    fn output(&mut self, stream: StreamKind, bytes: &[u8]) {
        if self.listener.is_none() {
            return;
        }
        let partial = self.partial(stream);
        partial.extend_from_slice(bytes);
        let unfinished = partial.split_off(finished_length(partial));
        let finished = std::mem::replace(partial, unfinished);
        if !finished.is_empty() {
            self.emit(EventKind::Output(stream, finished));
        }
    }

    fn usage(&mut self, sample: UsageSample) {
        self.emit(EventKind::Usage(sample));
    }

    fn network(&mut self, event: NetworkEvent) {
        self.emit(EventKind::Network(event));
    }
}

/// Length of the bytes before an incomplete character at the end. Bytes that are invalid in any case count as complete.
fn finished_length(bytes: &[u8]) -> usize {
    // A UTF-8 character has at most four bytes, so an incomplete one has at most three.
    let tail = bytes.len().saturating_sub(3);
    let is_continuation = |byte: &u8| (0x80..0xc0).contains(byte);
    let Some(last_start) = bytes[tail..].iter().rposition(|byte| !is_continuation(byte)) else {
        return bytes.len();
    };
    let start = tail + last_start;
    match std::str::from_utf8(&bytes[start..]) {
        Err(error) if error.valid_up_to() == 0 && error.error_len().is_none() => start,
        _ => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events for a stream that arrives in these chunks.
    fn chunks(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut heard = Vec::new();
        let mut listener = |event: &Event| {
            if let EventKind::Output(_, bytes) = &event.kind {
                heard.push(bytes.clone());
            }
        };
        let mut events = Events::new(Some(&mut listener));
        for chunk in chunks {
            events.output(StreamKind::Stdout, chunk);
        }
        events.stage_ended();
        drop(events);
        heard
    }

    #[test]
    fn a_character_split_anywhere_arrives_whole() {
        for character in ["é", "€", "😀"] {
            let text = format!("a{character}b");
            let bytes = text.as_bytes();
            for split in 0..=bytes.len() {
                let heard = chunks(&[&bytes[..split], &bytes[split..]]);
                assert_eq!(heard.concat(), bytes);
                for chunk in heard {
                    assert!(std::str::from_utf8(&chunk).is_ok(), "{text} at {split}");
                    assert!(!chunk.is_empty(), "{text} at {split}");
                }
            }
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(chunks(&single), [b"a", character.as_bytes(), b"b"]);
        }
    }

    #[test]
    fn bytes_that_can_be_no_character_are_not_held() {
        for bytes in [&b"\xff"[..], b"\x80\x80\x80\x80", b"\xc0", b"\xe2\x28", b"\xf5"] {
            assert_eq!(finished_length(bytes), bytes.len(), "{bytes:?}");
        }
    }

    #[test]
    fn an_unfinished_character_at_the_end_is_told_as_it_is() {
        assert_eq!(chunks(&[b"a\xe2\x82"]), [&b"a"[..], b"\xe2\x82"]);
        assert_eq!(chunks(&[b"\xe2", b"\xff"]), [b"\xe2\xff"]);
    }

    #[test]
    fn the_streams_do_not_wait_for_each_other() {
        let mut heard = Vec::new();
        let mut listener = |event: &Event| heard.push((event.seq, event.kind.name()));
        let mut events = Events::new(Some(&mut listener));
        events.queued();
        events.stage_begins(Stage::Run);
        events.output(StreamKind::Stdout, b"\xe2\x82");
        events.output(StreamKind::Stderr, b"x");
        events.output(StreamKind::Stdout, b"\xac");
        events.stage_ended();
        drop(events);
        assert_eq!(heard, [(1, "queued"), (2, "stage"), (3, "stderr"), (4, "stdout")]);
    }
}
