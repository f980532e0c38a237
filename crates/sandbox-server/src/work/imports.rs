//! Quotas on workspace archives that are being uploaded: each uses disk space until it is unpacked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sandbox_api::{Code, Problem};

/// The maximum number of concurrent uploads of one client.
const MAX_PER_CLIENT: usize = 2;
/// The maximum number of concurrent uploads of all clients.
const MAX_IMPORTS: usize = 16;

/// The number of running imports by client.
#[derive(Default)]
pub(super) struct Imports {
    clients: Mutex<HashMap<Option<String>, usize>>,
}

/// Permission to upload one archive, until it is dropped.
pub(crate) struct Import {
    imports: Arc<Imports>,
    client: Option<String>,
}

impl Imports {
    pub(super) fn begin(self: &Arc<Self>, client: Option<String>) -> Result<Import, Problem> {
        let mut clients = self.lock();
        let own = clients.get(&client).copied().unwrap_or_default();
        if own >= MAX_PER_CLIENT {
            let reason = format!("this client imports {own} workspaces already");
            return Err(Problem::new(Code::QuotaExceeded, reason));
        }
        if clients.values().sum::<usize>() >= MAX_IMPORTS {
            let reason = format!("{MAX_IMPORTS} workspaces are being imported already");
            return Err(Problem::new(Code::QueueFull, reason));
        }
        clients.insert(client.clone(), own + 1);
        Ok(Import { imports: Arc::clone(self), client })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Option<String>, usize>> {
        // No panic leaves the counts half changed.
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Import {
    fn drop(&mut self) {
        let mut clients = self.imports.lock();
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
        let imports = Arc::new(Imports::default());
        let begin = |client: usize| imports.begin(Some(client.to_string()));
        let code = |client| begin(client).err().map(|problem| problem.code);
        let first = begin(0).unwrap();
        let mut held = vec![begin(0).unwrap()];
        assert_eq!(code(0), Some(Code::QuotaExceeded));
        drop(first);
        held.push(begin(0).unwrap());
        held.extend((1..MAX_IMPORTS - 1).map(|client| begin(client).unwrap()));
        assert_eq!(code(MAX_IMPORTS), Some(Code::QueueFull));
        drop(held);
        assert_eq!(code(MAX_IMPORTS), None);
        assert!(imports.lock().is_empty());
    }
}
