//! Authentication and rate limiting: the middleware in front of every route that does something.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sandbox_api::{Code, Problem};
use sandbox_store::{Permission, Permissions, Scope};

use super::caller::Authenticated;
use super::error::ApiError;
use super::peer::Peer;
use super::rate_limit::{Client, Limiter};
use crate::keys::{Identity, Keys};
use crate::metrics::Metrics;
use crate::state::AppState;

/// A request over the rate limit is refused after this time. Its client should not come back for a second; one that
/// does at once would make the server spend its time on refusals. Until then the body is not read.
pub(super) const REFUSAL_DELAY: Duration = Duration::from_millis(100);

/// The state of the middleware.
#[derive(Clone)]
pub(super) struct Auth {
    keys: Arc<Keys>,
    limiter: Arc<Limiter>,
    metrics: Arc<Metrics>,
    limits_local: bool,
    /// Permissions that every key has.
    key_permissions: Permissions,
    /// Permissions of clients without a key.
    local_permissions: Permissions,
}

impl Auth {
    pub(super) fn new(state: &AppState) -> Self {
        Self {
            keys: Arc::clone(&state.keys),
            limiter: Arc::new(Limiter::new(&state.config)),
            metrics: Arc::clone(&state.metrics),
            limits_local: state.config.limit_local,
            key_permissions: state.config.key_permissions.clone(),
            local_permissions: state.config.local_permissions.clone(),
        }
    }

    /// Identifies the client by its connection or its key. A server without keys serves every client that reaches it on
    /// loopback.
    fn identify(
        &self,
        peer: Option<Peer>,
        headers: &HeaderMap,
        uri: &Uri,
    ) -> Result<Identity, Problem> {
        let without_key = |permissions| Identity {
            key: None,
            scopes: vec![Scope::Execute, Scope::Read],
            permissions,
        };
        if let Some(Peer::SameUser) = peer {
            // The operator: this user could read the database and start another server.
            return Ok(without_key(Permission::ALL.into()));
        }
        if self.keys.is_empty() {
            check_host(headers, uri)?;
            return Ok(without_key(self.local_permissions.clone()));
        }
        let presented = presented_key(headers).ok_or_else(|| {
            let detail = "send a key as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'";
            Problem::new(Code::Unauthorized, detail)
        })?;
        let invalid = || Problem::new(Code::Unauthorized, "this key is not valid");
        let mut identity = self.keys.check(presented).ok_or_else(invalid)?;
        identity.permissions.extend(&self.key_permissions);
        Ok(identity)
    }
}

/// Identifies the client and takes a token for the request. A request with a wrong key takes a token of its address,
/// which bounds the rate at which keys can be guessed.
pub(super) async fn authenticate(
    State(auth): State<Auth>,
    mut request: Request,
    next: Next,
) -> Response {
    let peer = request.extensions().get().copied();
    let identity = auth.identify(peer, request.headers(), request.uri());
    let client = match &identity {
        Ok(Identity { key: Some(key), .. }) => Client::Key(key.clone()),
        Ok(Identity { key: None, .. }) if !auth.limits_local => Client::Local,
        _ => Client::at(address(peer)),
    };
    let rate = auth.limiter.take(&client);
    let retry_after = rate.and_then(|rate| rate.retry_after);
    let mut response = match (retry_after, identity) {
        (Some(wait), _) => {
            auth.metrics.rate_limited();
            tokio::time::sleep(REFUSAL_DELAY).await;
            ApiError::rate_limited(wait).into_response()
        }
        (None, Err(problem)) => ApiError::from(problem).into_response(),
        (None, Ok(identity)) => {
            let authenticated = Authenticated::new(identity, client, auth.limiter, auth.metrics);
            request.extensions_mut().insert(authenticated);
            next.run(request).await
        }
    };
    if let Some(rate) = rate {
        rate.write_headers(response.headers_mut());
    }
    response
}

/// Refuses requests to a host name other than `localhost`. This stops DNS rebinding: a web page of another site can
/// point its own name at the loopback address and would then be same-origin with a server that needs no key.
fn check_host(headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let authority = uri.authority().map(|authority| authority.as_str().to_owned());
    let header = || headers.get(HOST).and_then(|host| host.to_str().ok()).map(ToOwned::to_owned);
    let Some(authority) = authority.or_else(header) else {
        return Ok(());
    };
    let is_local = authority.parse::<axum::http::uri::Authority>().is_ok_and(|authority| {
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
    });
    if is_local {
        return Ok(());
    }
    let detail = format!(
        "a server without API keys accepts the host name 'localhost' and IP addresses, not '{authority}'"
    );
    Err(Problem::new(Code::Forbidden, detail))
}

fn presented_key(headers: &HeaderMap) -> Option<&str> {
    if let Some(authorization) = headers.get(AUTHORIZATION) {
        let (scheme, key) = authorization.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then_some(key.trim());
    }
    headers.get("x-api-key")?.to_str().ok()
}

/// The address whose rate limit applies to a client without a valid key.
fn address(peer: Option<Peer>) -> IpAddr {
    match peer {
        Some(Peer::Remote(address)) => address.ip(),
        Some(Peer::SameUser) | None => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn host(name: &str) -> Result<(), Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(name).unwrap());
        check_host(&headers, &Uri::from_static("/"))
    }

    #[test]
    fn only_localhost_and_addresses_are_accepted_as_host() {
        for name in ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080", "[::1]"] {
            assert!(host(name).is_ok(), "{name}");
        }
        for name in
            ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.x", ""]
        {
            assert!(host(name).is_err(), "{name}");
        }
        let absolute = Uri::from_static("http://evil.example/api");
        assert!(check_host(&HeaderMap::new(), &absolute).is_err());
        assert!(check_host(&HeaderMap::new(), &Uri::from_static("/")).is_ok());
    }

    #[test]
    fn a_key_is_accepted_in_either_header() {
        let with = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            presented_key(&headers).map(ToOwned::to_owned)
        };
        assert_eq!(with("authorization", "Bearer k"), Some("k".into()));
        assert_eq!(with("authorization", "bearer  k"), Some("k".into()));
        assert_eq!(with("x-api-key", "k"), Some("k".into()));
        assert_eq!(with("authorization", "Basic k"), None);
        assert_eq!(with("authorization", "k"), None);
        assert_eq!(with("cookie", "k"), None);
    }
}
