//! Who is asking, and may they ask now: the way to every route that does something.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::{HeaderMap, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use sandbox_api::{Code, Problem};
use sandbox_store::{Permissions, Scope};

use super::caller::Visitor;
use super::limiter::{Client, Limiter};
use super::refusal::Refusal;
use crate::keys::{Identity, Keys};
use crate::metrics::Metrics;
use crate::state::AppState;

/// What is needed to let somebody in.
#[derive(Clone)]
pub(super) struct Door {
    keys: Arc<Keys>,
    limiter: Arc<Limiter>,
    metrics: Arc<Metrics>,
    limits_local: bool,
    /// Permissions that every key has.
    key_permissions: Permissions,
    /// Permissions of clients without a key.
    local_permissions: Permissions,
}

impl Door {
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

    /// The client by its key; without keys, whoever reaches us on loopback.
    fn recognise(&self, headers: &HeaderMap, uri: &Uri) -> Result<Identity, Problem> {
        if self.keys.is_empty() {
            refuse_foreign_names(headers, uri)?;
            return Ok(Identity {
                key: None,
                scopes: vec![Scope::Execute, Scope::Read],
                permissions: self.local_permissions.clone(),
            });
        }
        let presented = presented_key(headers).ok_or_else(|| {
            let detail = "send a key as 'Authorization: Bearer KEY' or 'X-API-Key: KEY'";
            Problem::new(Code::Unauthorized, detail)
        })?;
        let unknown = || Problem::new(Code::Unauthorized, "this key is not valid");
        let mut identity = self.keys.check(presented).ok_or_else(unknown)?;
        identity.permissions.extend(&self.key_permissions);
        Ok(identity)
    }
}

/// Recognises the client and takes a token for the request. Wrong keys cost the address a token, so
/// that they cannot be tried at will.
pub(super) async fn pass(State(door): State<Door>, mut request: Request, next: Next) -> Response {
    let identity = door.recognise(request.headers(), request.uri());
    let client = match &identity {
        Ok(Identity { key: Some(key), .. }) => Client::Key(key.clone()),
        Ok(Identity { key: None, .. }) if !door.limits_local => Client::Local,
        _ => Client::at(peer(&request)),
    };
    let standing = door.limiter.take(&client);
    let refused_for = standing.and_then(|standing| standing.refused_for);
    let mut response = match (refused_for, identity) {
        (Some(wait), _) => {
            door.metrics.rate_limited();
            Refusal::rate_limited(wait).into_response()
        }
        (None, Err(problem)) => Refusal::from(problem).into_response(),
        (None, Ok(identity)) => {
            let visitor = Visitor::new(identity, client, door.limiter, door.metrics);
            request.extensions_mut().insert(visitor);
            next.run(request).await
        }
    };
    if let Some(standing) = standing {
        standing.write(response.headers_mut());
    }
    response
}

/// A page of another site can make its own name lead to our loopback address, and would then be of one
/// origin with us. Without keys to stop it, only names that cannot lead elsewhere are answered to.
fn refuse_foreign_names(headers: &HeaderMap, uri: &Uri) -> Result<(), Problem> {
    let authority = uri.authority().map(|authority| authority.as_str().to_owned());
    let header = || headers.get(HOST).and_then(|host| host.to_str().ok()).map(ToOwned::to_owned);
    let Some(authority) = authority.or_else(header) else {
        return Ok(());
    };
    let is_ours = authority.parse::<axum::http::uri::Authority>().is_ok_and(|authority| {
        let host = authority.host();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
    });
    if is_ours {
        return Ok(());
    }
    let detail = format!(
        "without API keys this server answers to 'localhost' and to addresses, not to '{authority}'"
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

fn peer(request: &Request) -> IpAddr {
    let info = request.extensions().get::<ConnectInfo<SocketAddr>>();
    info.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |ConnectInfo(address)| address.ip())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn host(name: &str) -> Result<(), Problem> {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, HeaderValue::from_str(name).unwrap());
        refuse_foreign_names(&headers, &Uri::from_static("/"))
    }

    #[test]
    fn names_that_can_lead_elsewhere_are_not_answered_to() {
        for name in ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080", "[::1]"] {
            assert!(host(name).is_ok(), "{name}");
        }
        for name in
            ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.x", ""]
        {
            assert!(host(name).is_err(), "{name}");
        }
        let absolute = Uri::from_static("http://evil.example/api");
        assert!(refuse_foreign_names(&HeaderMap::new(), &absolute).is_err());
        assert!(refuse_foreign_names(&HeaderMap::new(), &Uri::from_static("/")).is_ok());
    }

    #[test]
    fn a_key_comes_in_either_header() {
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
