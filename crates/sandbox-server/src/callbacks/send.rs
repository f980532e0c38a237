//! One try to hand a callback over.

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

/// From the first question about its name to the head of the answer.
pub(super) const DELIVERY_TIMEOUT: Duration = Duration::from_secs(10);

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// What came of a try.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Tried {
    /// The receiver has it.
    Arrived,
    /// It may arrive another time.
    Failed(String),
    /// There is no use in trying again.
    Hopeless(String),
}

/// What is sent.
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    /// Seconds since 1970.
    pub(super) timestamp: i64,
    pub(super) signature: String,
    pub(super) body: Vec<u8>,
}

/// Sends, to permitted addresses only.
pub(super) struct Sender {
    client: Client,
}

impl Sender {
    pub(super) fn new(
        policy: Arc<AddressPolicy>,
        roots: RootCertStore,
        patience: Duration,
    ) -> Result<Self> {
        let client = Client::builder()
            .tls_backend_preconfigured(tls(roots)?)
            .dns_resolver(Resolver::new(policy))
            // Another place would have to be checked as the first one was, and nobody needs it.
            .redirect(redirect::Policy::none())
            // A proxy would resolve names itself, and reach what we may not.
            .no_proxy()
            // A connection that is kept was checked when its name meant something else.
            .pool_max_idle_per_host(0)
            .timeout(patience)
            .user_agent(concat!("sandboxd/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { client: client.context("no client for callbacks can be made")? })
    }

    pub(super) async fn send(&self, url: Url, message: Message<'_>) -> Tried {
        let headers = match headers(&message) {
            Ok(headers) => headers,
            Err(error) => return Tried::Hopeless(error.to_string()),
        };
        let sent = self.client.post(url).headers(headers).body(message.body).send().await;
        match sent {
            // What else it says is not read: the connection is closed with the answer.
            Ok(answer) => judge(answer.status()),
            // The URL may have a secret in it, and reasons are logged.
            Err(error) => failed(&error.without_url()),
        }
    }
}

fn judge(status: StatusCode) -> Tried {
    match status {
        _ if status.is_success() => Tried::Arrived,
        StatusCode::GONE => Tried::Hopeless("the receiver wants no more of it (410)".to_owned()),
        _ if status.is_redirection() => {
            Tried::Failed(format!("the receiver is elsewhere ({status}), which is not followed"))
        }
        _ => Tried::Failed(format!("the receiver answered {status}")),
    }
}

fn failed(error: &reqwest::Error) -> Tried {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref::<RefusedAddress>() {
            return Tried::Hopeless(refused.to_string());
        }
        cause = error.source();
    }
    Tried::Failed(with_causes(error))
}

fn headers(message: &Message<'_>) -> Result<HeaderMap> {
    Ok(HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (ID, HeaderValue::from_str(message.id)?),
        (TIMESTAMP, HeaderValue::from(message.timestamp)),
        (SIGNATURE, HeaderValue::from_str(&message.signature)?),
    ]))
}

/// The provider is named here, and not left to whatever the process has installed.
fn tls(roots: RootCertStore) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.context("no TLS can be spoken")?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// Whom this machine trusts. A machine that trusts nobody can still send by plain HTTP.
pub(super) fn roots_of_the_system() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        tracing::warn!("no certificates of authorities are installed: https callbacks will fail");
    }
    roots
}
