//! A synchronous client of the Docker Engine API.
//!
//! The underlying client is asynchronous. It runs on a thread of its own, so that callers may be
//! part of an async runtime themselves.

use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc;

use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::{API_DEFAULT_VERSION, Docker};
use futures_util::StreamExt as _;
use rustix::pipe::{PipeFlags, pipe_with};
use sandbox_core::BackendError;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::runtime::{Builder, Runtime};

use crate::error::failed;

/// The Engine's default address.
pub(super) const USUAL_HOST: &str = "unix:///var/run/docker.sock";
/// Seconds. A machine may be busy; an Engine that does not answer for this long hangs.
const ENGINE_TIMEOUT_SECONDS: u64 = 60;
const BUFFER_BYTES: usize = 64 * 1024;

/// A connection to an Engine.
pub(super) struct Engine {
    pub(super) docker: Docker,
    /// `Some` until dropped.
    runtime: Option<Runtime>,
}

impl Engine {
    /// Connects and negotiates the API version. The error is a message for people.
    pub(super) fn connect(host: &str) -> Result<Self, BackendError> {
        let Some(socket) = host.strip_prefix("unix://") else {
            let reason = format!(
                "the Docker Engine at {host} is not on this host: set DOCKER_HOST to its socket \
                 (unix:///PATH), or use --isolation native"
            );
            return Err(BackendError::Refused(reason));
        };
        let refused = |error: &dyn std::fmt::Display| {
            BackendError::Refused(format!(
                "there is no Docker Engine at {socket} ({error}): install and start one \
                 ('apt-get install docker.io' on Debian), set DOCKER_HOST, or use --isolation native"
            ))
        };
        if !Path::new(socket).exists() {
            return Err(refused(&"no such socket"));
        }
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("sandbox-docker")
            .enable_all()
            .build()
            .map_err(|error| failed("start a thread for the Docker Engine", error))?;
        let docker = Docker::connect_with_unix(socket, ENGINE_TIMEOUT_SECONDS, API_DEFAULT_VERSION);
        let docker = docker.map_err(|error| refused(&error))?;
        let docker = wait_on(&runtime, docker.negotiate_version());
        let docker = docker.map_err(|error| refused(&error))?.map_err(|error| refused(&error))?;
        Ok(Self { docker, runtime: Some(runtime) })
    }

    /// Sends a request and waits for the response.
    pub(super) fn wait<T, F>(&self, step: &str, call: F) -> Result<T, BackendError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        self.ask(call).map_err(|error| failed(step, error))
    }

    /// The same, for callers that handle an error response.
    pub(super) fn ask<T, F>(&self, call: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let runtime = self.runtime.as_ref().expect("it is there until the end");
        wait_on(runtime, call).map_err(|error| Error::IOError { err: error })?
    }

    /// Relays a container's input and output, until it ends or both descriptors are closed.
    pub(super) fn bridge(&self, streams: AttachContainerResults) -> io::Result<(OwnedFd, OwnedFd)> {
        let runtime = self.runtime.as_ref().expect("it is there until the end");
        let (from_us, input) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let (output, to_us) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // The local socket blocks when the container does not read.
        rustix::io::ioctl_fionbio(&input, false)?;
        let _inside = runtime.enter();
        let (from_us, to_us) =
            (pipe::Receiver::from_owned_fd(from_us)?, pipe::Sender::from_owned_fd(to_us)?);
        runtime.spawn(pass_in(from_us, streams.input));
        runtime.spawn(pass_out(streams.output, to_us));
        Ok((input, output))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // Nothing that still runs is needed, and the caller may not be allowed to block.
            runtime.shutdown_background();
        }
    }
}

fn wait_on<T: Send + 'static>(
    runtime: &Runtime,
    call: impl Future<Output = T> + Send + 'static,
) -> io::Result<T> {
    let (answer, answered) = mpsc::sync_channel(1);
    runtime.spawn(async move {
        // The caller waits below.
        let _ = answer.send(call.await);
    });
    answered.recv().map_err(|_| io::Error::other("the Engine's client broke off"))
}

async fn pass_in(
    mut from: pipe::Receiver,
    mut to: std::pin::Pin<Box<dyn tokio::io::AsyncWrite + Send>>,
) {
    let mut piece = vec![0; BUFFER_BYTES];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        if to.write_all(&piece[..count]).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
    // The agent ends when its input does.
    let _ = to.shutdown().await;
}

async fn pass_out(
    mut from: std::pin::Pin<Box<dyn futures_util::Stream<Item = Result<LogOutput, Error>> + Send>>,
    mut to: pipe::Sender,
) {
    while let Some(Ok(output)) = from.next().await {
        // The agent does not use standard error; output there comes from the runtime.
        let LogOutput::StdOut { message } = output else { continue };
        if to.write_all(&message).await.is_err() {
            return;
        }
    }
}
