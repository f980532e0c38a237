//! Startup, serving and shutdown.

mod accept;
mod connection;
mod data_lock;
mod http;
mod idle;
mod limits;
mod peer;
mod server_log;
mod signals;
mod socket;
mod tasks;
mod tls;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use futures_util::future::OptionFuture;
use sandbox::{Sandbox, SandboxBuilder};
use sandbox_scheduler::{Sandboxes, Scheduler, block_in_place};
use sandbox_store::{LocalQueue, SqliteStore, Store};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::api;
use crate::config::Config;
use crate::environments::ClientEnvironments;
use crate::keys::Keys;
use crate::logging;
use crate::metrics::Metrics;
use crate::observer::ServerObserver;
use crate::state::AppState;
use crate::telemetry::{Origin, Telemetry};
use crate::work::{Work, workspace};

use connection::Shared;
use data_lock::DataLock;
use idle::OpenConnections;
use limits::ConnectionLimits;
use signals::StopSignals;
use socket::UnixSocket;
use tls::Tls;

pub(crate) use tls::check as check_tls;

/// Time to send the last responses after the last execution has ended.
const RESPONSE_DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// Time to send the last traces after that.
const TRACE_FLUSH_TIMEOUT: Duration = Duration::from_secs(3);

/// Serves until SIGTERM or SIGINT, or until it was idle for as long as configured.
pub(crate) async fn serve(config: Config, file: Option<&Path>) -> Result<()> {
    let _log_guard = logging::start(&config)?;
    // From here on, a signal leads to an orderly shutdown.
    let mut signals = StopSignals::listen()?;
    limits::raise_open_files();
    let data_lock = DataLock::acquire(&config)?;
    let tls = config.tls.as_ref().map(Tls::load).transpose()?.map(Arc::new);
    let telemetry = Telemetry::start(&config)?;
    let state = build(config, telemetry).await?;
    let tcp = bind(&state).await?;
    let socket = state.config.socket.as_deref().map(UnixSocket::bind).transpose()?;
    // Executions from before a crash run before new ones.
    let recovered = Origin::server(&state.telemetry).scope(state.work.recover()).await;
    recovered.context("failed to recover executions of the previous run")?;
    let mut tasks = tasks::start(&state)?;
    tasks.spawn(signals::reload_on_hangup(tls.clone())?);
    let address = tcp.as_ref().map(TcpListener::local_addr).transpose()?;
    server_log::started(&state, address, socket.as_ref().map(UnixSocket::path), file);

    let (stop, stopped) = watch::channel(());
    let limits = ConnectionLimits::new(&state.config);
    let open = OpenConnections::default();
    let router = api::router(state.clone());
    let shared = Arc::new(Shared { router, limits, tls, open: open.clone() });
    let mut server = tokio::spawn(listen(tcp, socket, shared, stopped));

    tokio::select! {
        ended = &mut server => ended.context("the server task panicked")?,
        signal = signals.next() => server_log::stopping(signal, state.config.shutdown_deadline),
        () = idle(&state, &open) => tracing::info!("stopping: idle"),
    }
    drop(stop);
    tokio::select! {
        () = drain(&state, &mut server) => {}
        signal = signals.next() => tracing::warn!(signal, "second signal: stopping at once"),
    }
    server.abort();
    drop(tasks);
    state.store.close().await;
    drop(data_lock);
    tracing::info!("stopped");
    Ok(())
}

/// Builds the state of the server: everything except the socket.
async fn build(config: Config, telemetry: Telemetry) -> Result<AppState> {
    let store = open_store(&config).await?;
    let keys = Arc::new(Keys::load(&*store, &config.data_dir).await?);
    if let Some(address) = config.listen
        && keys.is_empty()
        && !address.ip().is_loopback()
    {
        bail!(
            "refusing to listen on {address} without API keys: create one with 'sandboxd keys create --name NAME', \
             or listen on 127.0.0.1"
        );
    }
    let config = Arc::new(config);
    let sandboxes = {
        let config = Arc::clone(&config);
        tokio::task::spawn_blocking(move || {
            Sandboxes::start(&config.isolations, &config.isolation_order, || {
                sandbox_builder(&config)
            })
        })
        .await
    };
    let sandboxes = Arc::new(sandboxes.context("starting the sandboxes panicked")??);
    let metrics = Arc::new(Metrics::new());
    let observer = Arc::new(ServerObserver::new(Arc::clone(&metrics)));
    let queue = Arc::new(LocalQueue::new(config.queue_bound));
    let scheduler =
        Arc::new(Scheduler::start((&*config).into(), queue, Arc::clone(&store), observer));
    let environments = ClientEnvironments::new(
        Arc::clone(sandboxes.for_packages()),
        Arc::clone(&store),
        Arc::clone(&scheduler),
        &config,
    );
    let environments = Arc::new(environments);
    let work = Work::new(scheduler, Arc::clone(&sandboxes), &config, Arc::clone(&metrics));
    let work = Arc::new(work);
    Ok(AppState { work, environments, sandboxes, store, keys, config, metrics, telemetry })
}

/// The settings that all sandboxes of this server share.
fn sandbox_builder(config: &Config) -> SandboxBuilder {
    let mut builder = Sandbox::builder()
        .warm(config.warm)
        .fork_policy(config.warm_copies)
        .blocking_with(block_in_place)
        .volumes_from(config.volumes_from.iter().cloned())
        .workspaces(workspace::of_server(config));
    if let Some(host) = &config.docker_host {
        builder = builder.docker_host(host);
    }
    if let Some(name) = &config.docker_runtime {
        builder = builder.docker_runtime(name);
    }
    if let Some(runtime) = &config.oci_runtime {
        builder = builder.oci_runtime(runtime.clone());
    }
    builder
}

/// Opens the database. Creates the data directory if it does not exist.
pub(crate) async fn open_store(config: &Config) -> Result<Arc<dyn Store>> {
    create_directory(&config.data_dir)?;
    let store = SqliteStore::open(&config.database).await;
    let store = store.with_context(|| format!("failed to open {}", config.database.display()))?;
    Ok(Arc::new(store))
}

/// Creates a data directory if it does not exist, accessible only by this user: it holds programs and their output.
fn create_directory(path: &Path) -> Result<()> {
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.with_context(|| format!("failed to create the directory {}", path.display()))
}

async fn bind(state: &AppState) -> Result<Option<TcpListener>> {
    let Some(address) = state.config.listen else { return Ok(None) };
    let listener = TcpListener::bind(address).await;
    listener.map(Some).with_context(|| format!("failed to listen on {address}"))
}

/// Serves the address and the socket, each with the maximum number of connections.
async fn listen(
    tcp: Option<TcpListener>,
    socket: Option<UnixSocket>,
    shared: Arc<Shared>,
    stop: watch::Receiver<()>,
) {
    let on_tcp = tcp.map(|tcp| accept::serve(tcp, Arc::clone(&shared), stop.clone()));
    let on_socket = socket.map(|socket| accept::serve(socket, shared, stop));
    tokio::join!(OptionFuture::from(on_tcp), OptionFuture::from(on_socket));
}

/// Waits until the server was idle for as long as configured.
async fn idle(state: &AppState, open: &OpenConnections) {
    match state.config.idle_exit {
        Some(duration) => open.idle_for(duration, &state.work).await,
        None => std::future::pending().await,
    }
}

/// Waits for running executions, then for their responses and traces. Executions that do not end in time return to the
/// queue.
async fn drain(state: &AppState, server: &mut JoinHandle<()>) {
    state.environments.stop();
    state.work.shut_down(state.config.shutdown_deadline).await;
    // A client that does not read its response does not delay the shutdown.
    let _ = tokio::time::timeout(RESPONSE_DRAIN_TIMEOUT, server).await;
    state.telemetry.shut_down(TRACE_FLUSH_TIMEOUT).await;
}
