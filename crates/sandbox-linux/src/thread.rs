//! Runs code in another namespace, on a thread of its own.

use std::io;

/// Runs a closure on a thread that may change its own namespaces.
pub(crate) fn on_a_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work)?;
    thread.join().map_err(|_| io::Error::other("its thread broke off"))?
}
