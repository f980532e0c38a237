//! Archives of workspaces that are being received or sent. One that is received takes room on the disk until it is
//! unpacked; one that is sent takes a thread for as long as its client reads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use sandbox_api::{Code, Problem};

use super::live::lock;

/// Archives of one client that are received at once, and as many that are sent.
const MAX_PER_CLIENT: usize = 2;
/// Archives of all clients that are received at once, and as many that are sent. The runtime has 512 threads for work
/// that blocks, reading from the store included.
const MAX_TRANSFERS: usize = 16;

/// The imports or exports that are under way, by client.
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
    /// `kind` is the word for them in the answer to a client that has too many.
    pub(super) fn new(kind: &'static str) -> Arc<Self> {
        Arc::new(Self { kind, clients: Mutex::default() })
    }

    pub(super) fn begin(self: &Arc<Self>, client: Option<String>) -> Result<Transfer, Problem> {
        let kind = self.kind;
        let mut clients = lock(&self.clients);
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
}

impl Drop for Transfer {
    fn drop(&mut self) {
        let mut clients = lock(&self.transfers.clients);
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
        assert!(lock(&imports.clients).is_empty());
    }
}
