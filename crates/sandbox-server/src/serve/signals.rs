//! Signals: SIGTERM and SIGINT stop the server, SIGHUP reloads its certificate.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use sandbox::with_causes;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::tls::Tls;

/// The signals that stop the server.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    pub(super) fn listen() -> Result<Self> {
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal, and returns its name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// Reloads the certificate on each SIGHUP. A server without a certificate handles the signal too, which would
/// terminate it otherwise.
pub(super) fn reload_on_hangup(tls: Option<Arc<Tls>>) -> Result<impl Future<Output = ()>> {
    let mut hangups = listen(SignalKind::hangup())?;
    Ok(async move {
        while hangups.recv().await.is_some() {
            match tls.as_ref().map(|tls| tls.reload()) {
                None => tracing::info!("SIGHUP: no certificate to reload"),
                Some(Ok(())) => tracing::info!("SIGHUP: reloaded the certificate"),
                Some(Err(error)) => {
                    let error = with_causes(&error);
                    tracing::error!(error, "SIGHUP: the old certificate stays in use");
                }
            }
        }
    })
}

fn listen(kind: SignalKind) -> Result<Signal> {
    signal(kind).context("failed to install a signal handler")
}
