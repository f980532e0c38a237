use std::future::Future;

use opentelemetry::Context;

use super::Telemetry;

tokio::task_local! {
    static ORIGIN: Origin;
}

/// The request that caused some work. A task-local variable holds it while the request is handled; work that outlives
/// the task takes a copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    request: Option<String>,
    telemetry: Telemetry,
    /// The parent of spans created for this work.
    parent: Context,
}

impl Origin {
    /// Work for a request.
    pub(super) fn of_request(id: &str, telemetry: &Telemetry, parent: Context) -> Self {
        Self { request: Some(id.to_owned()), telemetry: telemetry.clone(), parent }
    }

    /// Work of the server itself, such as recovery.
    pub(crate) fn server(telemetry: &Telemetry) -> Self {
        Self { telemetry: telemetry.clone(), ..Self::default() }
    }

    /// The origin of the current task.
    pub(crate) fn current() -> Self {
        ORIGIN.try_with(Self::clone).unwrap_or_default()
    }

    /// Runs a future with this origin.
    pub(crate) async fn scope<F: Future>(self, work: F) -> F::Output {
        ORIGIN.scope(self, work).await
    }

    /// The id of the request, if there is one.
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
