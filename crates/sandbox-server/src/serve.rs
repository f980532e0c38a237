//! Puts the parts together, serves, and takes them apart again.

mod announce;
mod signals;
mod tasks;

mod accept;
mod connection;
mod data_lock;
mod http;
mod limits;
mod open_files;
mod reload;
mod tls;

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
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
use limits::Limits;
use signals::Signals;
use tls::Tls;

pub(crate) use tls::check as check_tls;

/// After the last execution has ended, answers may take this long to reach their clients.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// And after those, traces may take this long to reach their collector.
const LAST_TRACES: Duration = Duration::from_secs(3);

/// Serves until a signal asks it to stop.
pub(crate) async fn serve(config: Config, file: Option<&Path>) -> Result<()> {
    let _last_lines = logging::start(&config)?;
    // From here on a signal is an orderly end, however far the start has come.
    let mut signals = Signals::listen()?;
    open_files::allow_all();
    let data_lock = DataLock::acquire(&config)?;
    let tls = config.tls.as_ref().map(Tls::load).transpose()?.map(Arc::new);
    let telemetry = Telemetry::start(&config)?;
    let state = build(config, telemetry).await?;
    let listener = bind(&state).await?;
    // What was accepted before a crash runs before what is asked for now.
    let recovered = Origin::server(&state.telemetry).scope(state.work.recover()).await;
    recovered.context("cannot take up what the last run left")?;
    let mut tasks = tasks::start(&state)?;
    tasks.spawn(reload::on_hangup(tls.clone())?);
    announce::started(&state, listener.local_addr()?, file);

    let (stop, stopped) = watch::channel(());
    let limits = Limits::of(&state.config);
    let shared = Arc::new(Shared { router: api::router(state.clone()), limits, tls });
    let mut server = tokio::spawn(accept::serve(listener, shared, stopped));

    tokio::select! {
        ended = &mut server => ended.context("the server's task ended")?,
        signal = signals.next() => announce::stopping(signal, state.config.shutdown_deadline),
    }
    drop(stop);
    tokio::select! {
        () = finish(&state, &mut server) => {}
        signal = signals.next() => tracing::warn!(signal, "a second signal: not waiting any longer"),
    }
    server.abort();
    drop(tasks);
    state.store.close().await;
    drop(data_lock);
    tracing::info!("stopped");
    Ok(())
}

/// Everything but the socket.
async fn build(config: Config, telemetry: Telemetry) -> Result<AppState> {
    let store = open_store(&config).await?;
    let keys = Arc::new(Keys::load(&*store, &config.data_dir).await?);
    if keys.is_empty() && !config.listen.ip().is_loopback() {
        bail!(
            "refusing to listen on {} without API keys: whoever reaches it could run code; make a \
             key with 'sandboxd keys create --name NAME', or listen on 127.0.0.1",
            config.listen
        );
    }
    let config = Arc::new(config);
    let sandboxes = {
        let config = Arc::clone(&config);
        tokio::task::spawn_blocking(move || {
            Sandboxes::start(&config.isolations, &config.isolation_order, || set_up(&config))
        })
        .await
    };
    let sandboxes = Arc::new(sandboxes.context("the start of the sandboxes broke off")??);
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

/// What all sandboxes of this server have in common.
fn set_up(config: &Config) -> SandboxBuilder {
    let mut builder = Sandbox::builder()
        .warm(config.warm)
        .copies(config.warm_copies)
        .blocking_with(block_in_place)
        // No request can name one, and none would get one.
        .volumes_from([])
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

/// Opens the database, making the data directory if it is not there.
pub(crate) async fn open_store(config: &Config) -> Result<Arc<dyn Store>> {
    create_directory(&config.data_dir)?;
    let store = SqliteStore::open(&config.database).await;
    let store = store.with_context(|| format!("cannot open {}", config.database.display()))?;
    Ok(Arc::new(store))
}

/// Makes a directory for data if it is not there: for this user alone, since what clients ran and printed
/// lies in it.
fn create_directory(path: &Path) -> Result<()> {
    let created = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    created.with_context(|| format!("cannot make the directory {}", path.display()))
}

async fn bind(state: &AppState) -> Result<TcpListener> {
    let address = state.config.listen;
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("cannot listen on {address}"))
}

/// Executions end or go back to the queue; then answers that are under way are sent.
async fn finish(state: &AppState, server: &mut JoinHandle<()>) {
    state.environments.stop();
    state.work.shut_down(state.config.shutdown_deadline).await;
    // Clients that never read their answer are not waited for.
    let _ = tokio::time::timeout(LAST_ANSWERS, server).await;
    state.telemetry.shut_down(LAST_TRACES).await;
}
