use anyhow::{Context as _, Result};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that ask the server to stop.
pub(super) struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    pub(super) fn listen() -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        let terminate = listen(SignalKind::terminate())?;
        Ok(Self { terminate, interrupt: listen(SignalKind::interrupt())? })
    }

    /// Waits for the next one, and gives its name.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
