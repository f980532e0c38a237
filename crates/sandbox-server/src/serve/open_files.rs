use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Lets the server have as many descriptors as it may: each connection is one, and the usual soft limit
/// is there for programs that use `select`. Sandboxes have a limit of their own.
pub(super) fn allow_all() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    if limit.current != limit.maximum
        && let Err(error) = setrlimit(Resource::Nofile, raised)
    {
        tracing::warn!(%error, limit = ?limit.current, "cannot raise the limit of open files");
    }
}
