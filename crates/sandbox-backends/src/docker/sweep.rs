//! Removes what ended processes left: their containers, including those that the Engine is still
//! creating.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bollard::query_parameters::ListContainersOptionsBuilder;
use sandbox_core::BackendError;
use sandbox_linux::cgroup::Hierarchy;

use super::container::remove;
use super::create_request::OWNER_LABEL;
use super::engine::Engine;
use super::failed;
use super::state::Leftover;

/// A request that reached the Engine is listed as a container within this time.
const CREATE_TIMEOUT: Duration = Duration::from_secs(5);
/// Containers that are still listed after this time cannot be removed.
const REMOVE_TIMEOUT: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Removes all leftovers.
pub(super) fn sweep(engine: &Engine) -> Result<(), BackendError> {
    let leftovers = Leftover::all();
    let mut pending: Vec<&str> =
        leftovers.iter().flat_map(|left| &left.pending).map(String::as_str).collect();
    let begun = Instant::now();
    let mut last_found = begun;
    loop {
        let found = containers_of_the_dead(engine)?;
        for (id, name) in &found {
            remove(engine, id).map_err(|error| failed("remove a container", error))?;
            pending.retain(|pending| pending != name);
            last_found = Instant::now();
        }
        // The Engine lists a container before its creation is complete, and until then answers a
        // removal as if it did not exist. So containers are gone only when they are no longer
        // listed.
        if found.is_empty() && (pending.is_empty() || last_found.elapsed() >= CREATE_TIMEOUT) {
            break;
        }
        if begun.elapsed() >= REMOVE_TIMEOUT {
            let names: Vec<_> = found.iter().map(|(_, name)| name.as_str()).collect();
            let names = format!("the Engine still lists {}", names.join(", "));
            return Err(failed("remove containers of processes that have ended", names));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    leftovers.into_iter().for_each(Leftover::remove);
    Ok(())
}

/// Their IDs and names.
fn containers_of_the_dead(engine: &Engine) -> Result<Vec<(String, String)>, BackendError> {
    let client = engine.docker.clone();
    let found = engine.wait("list containers", async move {
        let filters = HashMap::from([("label", vec![OWNER_LABEL])]);
        let options = ListContainersOptionsBuilder::new().all(true).filters(&filters).build();
        client.list_containers(Some(options)).await
    })?;
    let of_the_dead = found.into_iter().filter_map(|container| {
        let owner = container.labels.unwrap_or_default().remove(OWNER_LABEL)?;
        let name = container.names.unwrap_or_default().into_iter().next().unwrap_or_default();
        let name = name.trim_start_matches('/').to_owned();
        container.id.filter(|_| Hierarchy::is_left_by_the_dead(&owner)).map(|id| (id, name))
    });
    Ok(of_the_dead.collect())
}
