use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sandbox_api::{Code, Problem};
use sandbox_store::{ExecutionFilter, Scope};

use super::error::ApiError;
use super::rate_limit::{Client, Limiter};
use crate::keys::Identity;
use crate::metrics::Metrics;

/// A client that the middleware has authenticated; an extension of the request.
#[derive(Clone)]
pub(super) struct Authenticated {
    identity: Arc<Identity>,
    client: Client,
    limiter: Arc<Limiter>,
    metrics: Arc<Metrics>,
}

/// An authenticated client whose key has the scope `S`. The handler's signature names the scope, and the extractor
/// checks it before the body is read.
pub(super) struct Caller<S> {
    client: Authenticated,
    scope: PhantomData<S>,
}

/// A scope as a type.
pub(super) trait RequiredScope {
    const SCOPE: Scope;
}

/// The scope to run code.
pub(super) struct Execute;
/// The scope to read reports and the state of the server.
pub(super) struct Read;

impl RequiredScope for Execute {
    const SCOPE: Scope = Scope::Execute;
}
impl RequiredScope for Read {
    const SCOPE: Scope = Scope::Read;
}

impl Authenticated {
    pub(super) fn new(
        identity: Identity,
        client: Client,
        limiter: Arc<Limiter>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { identity: Arc::new(identity), client, limiter, metrics }
    }

    fn has_scope(&self, scope: Scope) -> bool {
        let has = |scope| self.identity.scopes.contains(&scope);
        // A server without keys has one client, its operator.
        self.identity.key.is_none()
            || has(Scope::Admin)
            || has(scope)
            || (scope == Scope::Read && has(Scope::Execute))
    }
}

impl<S> Caller<S> {
    pub(super) fn identity(&self) -> &Identity {
        &self.client.identity
    }

    /// Whether the client operates the server: it has an admin's key, or the server has no keys.
    pub(super) fn is_operator(&self) -> bool {
        let identity = self.identity();
        identity.key.is_none() || identity.scopes.contains(&Scope::Admin)
    }

    /// The filter for executions that the client may list: its own, or all with an admin's key.
    pub(super) fn visible(&self) -> ExecutionFilter {
        let identity = self.identity();
        let sees_all = identity.key.is_some() && self.is_operator();
        let owner = if sees_all { None } else { Some(identity.key.clone()) };
        ExecutionFilter { owner, ..ExecutionFilter::default() }
    }

    /// Takes a token for a further request of the same call.
    pub(super) fn take_token(&self) -> Result<(), ApiError> {
        let rate = self.client.limiter.take(&self.client.client);
        match rate.and_then(|rate| rate.retry_after) {
            None => Ok(()),
            Some(wait) => {
                self.client.metrics.rate_limited();
                Err(ApiError::rate_limited(wait))
            }
        }
    }
}

impl<R: RequiredScope, S: Sync> FromRequestParts<S> for Caller<R> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let client = parts.extensions.get::<Authenticated>().cloned();
        // Missing only if a route lacks the middleware: fail closed.
        let client = client.ok_or_else(|| Problem::new(Code::Unauthorized, "not authenticated"))?;
        if client.has_scope(R::SCOPE) {
            return Ok(Self { client, scope: PhantomData });
        }
        let required = match R::SCOPE {
            Scope::Execute => "execute",
            Scope::Read => "read",
            Scope::Admin => "admin",
        };
        let detail = format!("this requires a key with the scope '{required}'");
        Err(Problem::new(Code::Forbidden, detail).into())
    }
}
