use std::io::{self, Read};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use reqwest::blocking::{self, Body, RequestBuilder, Response};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, LOCATION};
use reqwest::{Method, StatusCode, redirect, retry};
use sandbox_api::{Accepted, ExecuteRequest};
use sandbox_core::Report;
use serde::de::DeserializeOwned;

use crate::runtimes::{Runtime, RuntimeList};
use crate::socket::CheckedSocket;
#[cfg(feature = "https")]
use crate::tls;
use crate::{ApiKey, Error, Events, InvalidKey, ServerUrl};

/// Maximum number of attempts of a request or a stream.
pub const MAX_ATTEMPTS: u32 = 5;
/// Maximum size of a response and of one event. A report is one of them, with all output and collected files.
const MAX_RESPONSE_BYTES: u64 = 256 << 20;
const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const OCTET_STREAM: &str = "application/octet-stream";
/// What an error calls the response to a submitted execution.
const TO_REQUEST: &str = "response to the request";

/// A client of one server.
#[derive(Clone, Debug)]
pub struct Client {
    http: blocking::Client,
    /// Where `http` connects to, if that is a Unix socket.
    socket: Option<Arc<CheckedSocket>>,
    url: ServerUrl,
    has_key: bool,
    timeouts: Timeouts,
}

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For a connection, including the TLS handshake.
    pub connect: Duration,
    /// For a complete response. A stream of events has no such limit.
    pub response: Duration,
    /// For the next bytes of a stream of events. Servers send something more often than the default.
    pub silence: Duration,
    /// Before the first retry. Each further retry waits twice as long.
    pub retry_delay: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            response: Duration::from_mins(1),
            silence: Duration::from_secs(45),
            retry_delay: Duration::from_millis(200),
        }
    }
}

/// Why a client cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The API key is invalid.
    #[error(transparent)]
    Key(#[from] InvalidKey),
    /// No server can be authenticated.
    #[cfg(feature = "https")]
    #[error(transparent)]
    Trust(#[from] tls::NoTrustedCertificates),
    /// The socket cannot be checked, such as for lack of descriptors.
    #[error("cannot check the socket of the server")]
    Socket(#[source] io::Error),
    /// The HTTP library cannot start, such as for lack of threads.
    #[error("cannot create an HTTP client")]
    Http(#[from] reqwest::Error),
}

impl Client {
    /// Creates a client with the default timeouts. Connects to nothing yet.
    pub fn new(url: ServerUrl, key: Option<&ApiKey>) -> Result<Self, ClientError> {
        Self::with_timeouts(url, key, Timeouts::default())
    }

    /// Creates a client with these timeouts.
    pub fn with_timeouts(
        url: ServerUrl,
        key: Option<&ApiKey>,
        timeouts: Timeouts,
    ) -> Result<Self, ClientError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = key {
            headers.insert(AUTHORIZATION, key.bearer()?);
        }
        let http = blocking::Client::builder()
            .user_agent(concat!("sandbox-run/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(redirect::Policy::none())
            .no_proxy()
            .retry(retry::never())
            .http1_only()
            // A connection that idles may break at any time: a new one fails only if the server or the network does.
            .pool_max_idle_per_host(0)
            .connect_timeout(timeouts.connect)
            // Limits each wait, for the head of a response or its next bytes. That of a request limits the whole.
            .timeout(timeouts.silence);
        let socket =
            url.socket().map(CheckedSocket::new).transpose().map_err(ClientError::Socket)?;
        let http = match &socket {
            Some(socket) => http.unix_socket(socket.checked_path()),
            None => http,
        };
        let socket = socket.map(Arc::new);
        #[cfg(feature = "https")]
        let http = http.tls_backend_preconfigured(tls::config(&url)?);
        Ok(Self { http: http.build()?, socket, url, has_key: key.is_some(), timeouts })
    }

    /// The server.
    pub fn url(&self) -> &ServerUrl {
        &self.url
    }

    /// Submits an execution. A server accepts it only once under one `idempotency_key`, so it is sent again if the
    /// connection breaks.
    pub fn execute(
        &self,
        request: &ExecuteRequest,
        idempotency_key: &str,
    ) -> Result<Accepted, Error> {
        let post = self.request(Method::POST, "/api/v1/execute?wait=false");
        let response = self.submit(post, request, idempotency_key)?;
        let accepted: Accepted = self.read(response, TO_REQUEST)?;
        self.check_id(&accepted.id)?;
        Ok(accepted)
    }

    /// Submits an execution like [`Self::execute`], and streams its events in the same response: faster than a request for
    /// the id and another for the events. Returns the id and the events, for [`Self::follow_stream`].
    pub fn execute_streaming(
        &self,
        request: &ExecuteRequest,
        idempotency_key: &str,
    ) -> Result<(String, Events), Error> {
        // Without the time limit of a complete response.
        let post = self.http.post(self.url.join("/api/v1/execute")).header(ACCEPT, EVENT_STREAM);
        let response = self.submit(post, request, idempotency_key)?;
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        if !header(CONTENT_TYPE).is_some_and(|value| value.starts_with(EVENT_STREAM)) {
            return Err(Error::invalid(&self.url, TO_REQUEST, "it has no events"));
        }
        let path = header(LOCATION).unwrap_or_default();
        let id = path.rsplit('/').next().unwrap_or_default().to_owned();
        self.check_id(&id)?;
        Ok((id, Events::new(self.url.clone(), response, MAX_RESPONSE_BYTES)))
    }

    fn submit(
        &self,
        post: RequestBuilder,
        request: &ExecuteRequest,
        idempotency_key: &str,
    ) -> Result<Response, Error> {
        let body = serde_json::to_vec(request).expect("a request has string keys only");
        let post = post.header(CONTENT_TYPE, JSON).header("Idempotency-Key", idempotency_key);
        self.send_with_retries(&post.body(body))
    }

    /// The id becomes part of a path.
    fn check_id(&self, id: &str) -> Result<(), Error> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !id.is_empty() && id.bytes().all(is_part) {
            return Ok(());
        }
        Err(Error::invalid(&self.url, TO_REQUEST, "it has an invalid id"))
    }

    /// Sends the standard input of an execution that was requested with `stdin_stream`, as `input` returns it. Returns at the
    /// end of the input, or with the next piece of it once no program reads it any more.
    pub fn send_stdin(&self, id: &str, input: impl Read + Send + 'static) -> Result<(), Error> {
        let request = self
            .request(Method::POST, &format!("/api/v1/execute/{id}/stdin"))
            .header(CONTENT_TYPE, OCTET_STREAM)
            // The limits of the execution apply instead.
            .timeout(Duration::MAX)
            .body(Body::new(input));
        self.check_socket()?;
        match request.send() {
            // The server has responded early, or has cancelled the execution of a connection that broke: the report tells.
            Err(error) if error.is_body() => Ok(()),
            sent => self.check(sent).map(drop),
        }
    }

    /// Gets the report of a finished execution.
    pub fn get(&self, id: &str) -> Result<Report, Error> {
        let request = self.request(Method::GET, &format!("/api/v1/execute/{id}"));
        self.read(self.send(request)?, "report")
    }

    /// Cancels an execution. No effect once it has finished.
    pub fn cancel(&self, id: &str) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &format!("/api/v1/execute/{id}"));
        self.send_with_retries(&request).map(drop)
    }

    /// Streams the events of an execution that come after number `after`; 0 for all. `None` if it has finished and
    /// there are no more.
    pub fn events(&self, id: &str, after: u64) -> Result<Option<Events>, Error> {
        let url = self.url.join(&format!("/api/v1/execute/{id}/stream"));
        let mut request = self.http.get(url).header(ACCEPT, EVENT_STREAM);
        if after > 0 {
            request = request.header("Last-Event-ID", after);
        }
        let response = self.send(request)?;
        let is_over = response.status() == StatusCode::NO_CONTENT;
        Ok((!is_over).then(|| Events::new(self.url.clone(), response, MAX_RESPONSE_BYTES)))
    }

    /// Lists the languages of the server.
    pub fn runtimes(&self) -> Result<Vec<Runtime>, Error> {
        let response = self.send(self.request(Method::GET, "/api/v1/runtimes"))?;
        self.read::<RuntimeList>(response, "list of languages").map(RuntimeList::into_vec)
    }

    /// Waits before a retry.
    pub(crate) fn wait_before_retry(&self, attempt: u32) {
        thread::sleep(self.timeouts.retry_delay * (1 << attempt.saturating_sub(1).min(6)));
    }

    fn request(&self, method: Method, resource: &str) -> RequestBuilder {
        let request = self.http.request(method, self.url.join(resource));
        request.header(ACCEPT, JSON).timeout(self.timeouts.response)
    }

    /// Sends a request. An error status is an error.
    fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        self.check_socket()?;
        self.check(request.send())
    }

    /// Checks who listens on the socket, if there is one.
    fn check_socket(&self) -> Result<(), Error> {
        let checked = self.socket.as_ref().map_or(Ok(()), |socket| socket.check());
        checked.map_err(|error| Error::connect(&self.url, &error))
    }

    fn check(&self, sent: reqwest::Result<Response>) -> Result<Response, Error> {
        let response = sent.map_err(|error| Error::transport(&self.url, &error))?;
        let status = response.status();
        match status {
            _ if status.is_success() => Ok(response),
            StatusCode::UNAUTHORIZED if self.has_key => {
                Err(Error::KeyRejected { url: self.url.to_string() })
            }
            StatusCode::UNAUTHORIZED => Err(Error::KeyRequired { url: self.url.to_string() }),
            // A server may close the connection in the middle of a refusal: the status is left then.
            _ => {
                let body = self.body(response).unwrap_or_default();
                Err(Error::refused(&self.url, status.as_u16(), &body))
            }
        }
    }

    /// Sends a request that may arrive twice, and again if the connection breaks. A server that cannot be reached, is
    /// slow or does not speak HTTP is asked once.
    fn send_with_retries(&self, request: &RequestBuilder) -> Result<Response, Error> {
        let send = || self.send(request.try_clone().expect("the body is in memory"));
        for attempt in 1..MAX_ATTEMPTS {
            match send() {
                Err(Error::Closed { .. } | Error::Broken { .. }) => self.wait_before_retry(attempt),
                result => return result,
            }
        }
        send()
    }

    fn read<T: DeserializeOwned>(
        &self,
        response: Response,
        what: &'static str,
    ) -> Result<T, Error> {
        let body = self.body(response)?;
        serde_json::from_slice(&body).map_err(|error| Error::invalid(&self.url, what, error))
    }

    fn body(&self, response: Response) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let mut body = response.take(MAX_RESPONSE_BYTES + 1);
        body.read_to_end(&mut bytes).map_err(|error| Error::transport(&self.url, &error))?;
        if bytes.len() as u64 > MAX_RESPONSE_BYTES {
            return Err(Error::invalid(&self.url, "response", "it exceeds 256M"));
        }
        Ok(bytes)
    }
}
