//! Limits how many archives of workspaces are transferred at once. An import occupies disk space until it is unpacked, an
//! export occupies a thread for as long as its client reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox_api::{Code, Problem};

/// Imports of one client at once; the same for exports.
const MAX_PER_CLIENT: usize = 2;
/// Imports of all clients at once; the same for exports. The runtime has 512 threads for blocking work, reads of the store
/// included.
const MAX_TRANSFERS: usize = 16;

/// The imports or the exports in progress, by client.
pub(super) struct Transfers {
    kind: &'static str,
    clients: Mutex<HashMap<Option<String>, usize>>,
}

/// Permission to transfer one archive, until it is dropped.
pub(crate) struct Transfer {
    transfers: Arc<Transfers>,
    client: Option<String>,
}

impl Transfers {
    /// `kind` names them in error messages.
    pub(super) fn new(kind: &'static str) -> Arc<Self> {
        Arc::new(Self { kind, clients: Mutex::default() })
    }

    pub(super) fn begin(self: &Arc<Self>, client: Option<String>) -> Result<Transfer, Problem> {
        let kind = self.kind;
        let mut clients = self.lock();
        let own = clients.get(&client).copied().unwrap_or_default();
        if own >= MAX_PER_CLIENT {
            let reason = format!("this client has {own} {kind} of workspaces already");
            return Err(Problem::new(Code::QuotaExceeded, reason));
        }
        if clients.values().sum::<usize>() >= MAX_TRANSFERS {
            let reason = format!("there are {MAX_TRANSFERS} {kind} of workspaces already");
            return Err(Problem::new(Code::QueueFull, reason));
        }
        clients.insert(client.clone(), own + 1);
        Ok(Transfer { transfers: Arc::clone(self), client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<String>, usize>> {
        // No panic leaves the counts half changed.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let mut clients = self.transfers.lock();
        if let Some(count) = clients.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                clients.remove(&self.client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_client_takes_the_room_of_the_others() {
        let imports = Transfers::new("imports");
        let begin = |client: usize| imports.begin(Some(client.to_string()));
        let code = |client| begin(client).err().map(|problem| problem.code);
        let first = begin(0).unwrap();
        let mut held = vec![begin(0).unwrap()];
        assert_eq!(code(0), Some(Code::QuotaExceeded));
        drop(first);
        held.push(begin(0).unwrap());
        held.extend((1..MAX_TRANSFERS - 1).map(|client| begin(client).unwrap()));
        assert_eq!(code(MAX_TRANSFERS), Some(Code::QueueFull));
        drop(held);
        assert_eq!(code(MAX_TRANSFERS), None);
        assert!(imports.lock().is_empty());
    }
}
