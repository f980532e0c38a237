use std::marker::PhantomData;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use sandbox_api::{Code, Problem};
use sandbox_store::{ExecutionFilter, Scope};

use super::limiter::{Client, Limiter};
use super::refusal::Refusal;
use crate::keys::Identity;
use crate::metrics::Metrics;

/// Somebody who came through the door.
#[derive(Clone)]
pub(super) struct Visitor {
    identity: Arc<Identity>,
    client: Client,
    limiter: Arc<Limiter>,
    metrics: Arc<Metrics>,
}

/// A visitor who may do what the handler does: the handler's signature says what that is, and it is
/// checked before the body is read.
pub(super) struct Caller<M> {
    visitor: Visitor,
    may: PhantomData<M>,
}

/// What a caller may do.
pub(super) trait May {
    const SCOPE: Scope;
}

/// Run code.
pub(super) struct Execute;
/// Read what came of it.
pub(super) struct Read;

impl May for Execute {
    const SCOPE: Scope = Scope::Execute;
}
impl May for Read {
    const SCOPE: Scope = Scope::Read;
}

impl Visitor {
    pub(super) fn new(
        identity: Identity,
        client: Client,
        limiter: Arc<Limiter>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { identity: Arc::new(identity), client, limiter, metrics }
    }

    fn may(&self, scope: Scope) -> bool {
        let has = |scope| self.identity.scopes.contains(&scope);
        // Without keys there is one client, and the server is its own.
        self.identity.key.is_none()
            || has(Scope::Admin)
            || has(scope)
            || (scope == Scope::Read && has(Scope::Execute))
    }
}

impl<M> Caller<M> {
    pub(super) fn identity(&self) -> &Identity {
        &self.visitor.identity
    }

    /// Whether the server is theirs: an admin's key, or the one client of a server without keys.
    pub(super) fn is_operator(&self) -> bool {
        let identity = self.identity();
        identity.key.is_none() || identity.scopes.contains(&Scope::Admin)
    }

    /// Finds the executions that a listing may show: one's own, or with an admin's key everyone's.
    pub(super) fn visible(&self) -> ExecutionFilter {
        let identity = self.identity();
        let sees_all = identity.key.is_some() && self.is_operator();
        let owner = if sees_all { None } else { Some(identity.key.clone()) };
        ExecutionFilter { owner, ..ExecutionFilter::default() }
    }

    /// Takes a token for one more request that came in the same call.
    pub(super) fn take_token(&self) -> Result<(), Refusal> {
        let standing = self.visitor.limiter.take(&self.visitor.client);
        match standing.and_then(|standing| standing.refused_for) {
            None => Ok(()),
            Some(wait) => {
                self.visitor.metrics.rate_limited();
                Err(Refusal::rate_limited(wait))
            }
        }
    }
}

impl<M: May, S: Sync> FromRequestParts<S> for Caller<M> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let visitor = parts.extensions.get::<Visitor>().cloned();
        // Only a route that was not put behind the door comes here without a visitor: fail closed.
        let visitor =
            visitor.ok_or_else(|| Problem::new(Code::Unauthorized, "nobody was recognised"))?;
        if visitor.may(M::SCOPE) {
            return Ok(Self { visitor, may: PhantomData });
        }
        let needed = match M::SCOPE {
            Scope::Execute => "execute",
            Scope::Read => "read",
            Scope::Admin => "admin",
        };
        let detail = format!("this needs a key with the scope '{needed}'");
        Err(Problem::new(Code::Forbidden, detail).into())
    }
}
