use std::future::Future;

use opentelemetry::Context;

use super::Telemetry;

tokio::task_local! {
    static ORIGIN: Origin;
}

/// Where work comes from: the request that asked for it. It travels with the task that answers the
/// request, so that what lies between need not hand it on; whatever outlives the task takes a copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    request: Option<String>,
    telemetry: Telemetry,
    /// What spans made on its behalf hang on.
    parent: Context,
}

impl Origin {
    /// A request with this id.
    pub(super) fn of_request(id: &str, telemetry: &Telemetry, parent: Context) -> Self {
        Self { request: Some(id.to_owned()), telemetry: telemetry.clone(), parent }
    }

    /// Nobody's request: the server itself, taking up what it found.
    pub(crate) fn server(telemetry: &Telemetry) -> Self {
        Self { telemetry: telemetry.clone(), ..Self::default() }
    }

    /// That of the task that calls.
    pub(crate) fn current() -> Self {
        ORIGIN.try_with(Self::clone).unwrap_or_default()
    }

    /// Does something on its behalf.
    pub(crate) async fn scope<F: Future>(self, work: F) -> F::Output {
        ORIGIN.scope(self, work).await
    }

    /// The id of the request, if there was one.
    pub(crate) fn request(&self) -> Option<&str> {
        self.request.as_deref()
    }

    pub(super) fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    pub(super) fn parent(&self) -> &Context {
        &self.parent
    }
}
