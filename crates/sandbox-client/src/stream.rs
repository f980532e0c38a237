use reqwest::blocking::Response;

use crate::sse::Messages;
use crate::{Error, ServerUrl, StreamMessage, parse_event};

/// The events of an execution as they come. Ends when the server closes the stream.
#[derive(Debug)]
pub struct Events {
    url: ServerUrl,
    messages: Messages<Response>,
}

impl Events {
    pub(crate) fn new(url: ServerUrl, response: Response, max_message_bytes: u64) -> Self {
        Self { url, messages: Messages::new(response, max_message_bytes) }
    }
}

impl Iterator for Events {
    type Item = Result<StreamMessage, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let message = self.messages.next()?;
        let message = message.map_err(|error| Error::transport(&self.url, &error));
        Some(message.and_then(|text| parse_event(&text).map_err(Error::Event)))
    }
}
