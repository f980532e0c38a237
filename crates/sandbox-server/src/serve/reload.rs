use std::sync::Arc;

use anyhow::{Context as _, Result};
use sandbox::with_causes;
use tokio::signal::unix::{SignalKind, signal};

use super::tls::Tls;

/// Reads the certificate again whenever SIGHUP says so. A server without one hears the signal too: it
/// would end it otherwise.
pub(super) fn on_hangup(tls: Option<Arc<Tls>>) -> Result<impl Future<Output = ()>> {
    let mut hangups = signal(SignalKind::hangup()).context("cannot listen for signals")?;
    Ok(async move {
        while hangups.recv().await.is_some() {
            match tls.as_ref().map(|tls| tls.reload()) {
                None => tracing::info!("SIGHUP: there is no certificate to read again"),
                Some(Ok(())) => tracing::info!("SIGHUP: new connections get the new certificate"),
                Some(Err(error)) => {
                    let error = with_causes(&error);
                    tracing::error!(error, "SIGHUP: the old certificate stays in use");
                }
            }
        }
    })
}
