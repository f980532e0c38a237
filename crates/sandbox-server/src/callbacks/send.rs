//! One attempt to deliver a callback.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use sandbox::with_causes;

use super::address::{AddressPolicy, RefusedAddress};
use super::resolve::Resolver;

/// From the resolution of the host name to the head of the response.
pub(super) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// The outcome of an attempt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The receiver accepted it.
    Delivered,
    /// A later attempt may succeed.
    Retry(String),
    /// No later attempt can succeed.
    Permanent(String),
}

/// The content of a callback.
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    /// Seconds since 1970.
    pub(super) timestamp: i64,
    pub(super) signature: String,
    pub(super) body: Vec<u8>,
}

/// Sends to permitted addresses only.
pub(super) struct Sender {
    client: Client,
}

impl Sender {
    pub(super) fn new(
        policy: Arc<AddressPolicy>,
        roots: RootCertStore,
        timeout: Duration,
    ) -> Result<Self> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls(roots)?)
            .dns_resolver(Resolver::new(policy))
            // Another URL would have to be checked like the first one.
            .redirect(redirect::Policy::none())
            // A proxy would resolve names itself, and could reach addresses that are not permitted.
            .no_proxy()
            // An idle connection was checked when its name resolved to something else.
            .pool_max_idle_per_host(0)
            .timeout(timeout)
            .user_agent(concat!("sandboxd/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { client: client.context("no client for callbacks can be made")? })
    }

    pub(super) async fn send(&self, url: Url, message: Message<'_>) -> Attempt {
        let headers = match headers(&message) {
            Ok(headers) => headers,
            Err(error) => return Attempt::Permanent(error.to_string()),
        };
        let sent = self.client.post(url).headers(headers).body(message.body).send().await;
        match sent {
            // The body is not read; the connection is closed.
            Ok(response) => outcome_of(response.status()),
            // The URL may contain a secret, and reasons are logged.
            Err(error) => failed(&error.without_url()),
        }
    }
}

fn outcome_of(status: StatusCode) -> Attempt {
    match status {
        _ if status.is_success() => Attempt::Delivered,
        StatusCode::GONE => Attempt::Permanent("the receiver wants no more of it (410)".to_owned()),
        _ if status.is_redirection() => {
            Attempt::Retry(format!("the receiver is elsewhere ({status}), which is not followed"))
        }
        _ => Attempt::Retry(format!("the receiver answered {status}")),
    }
}

fn failed(error: &reqwest::Error) -> Attempt {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<RefusedAddress>() {
            return Attempt::Permanent(refused.to_string());
        }
        cause = error.source();
    }
    Attempt::Retry(with_causes(error))
}

fn headers(message: &Message<'_>) -> Result<HeaderMap> {
    Ok(HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ID, HeaderValue::from_str(message.id)?),
        (TIMESTAMP, HeaderValue::from(message.timestamp)),
        (SIGNATURE, HeaderValue::from_str(&message.signature)?),
    ]))
}

/// Names the crypto provider instead of using the process default.
fn tls(roots: RootCertStore) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.context("no TLS can be spoken")?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The certificate authorities of this host. Without any, callbacks over plain HTTP still work.
pub(super) fn system_roots() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        tracing::warn!("no certificates of authorities are installed: https callbacks will fail");
    }
    roots
}
