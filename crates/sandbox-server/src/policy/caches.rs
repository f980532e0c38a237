//! Which caches the keys of a server share.

use sandbox::RequestBuilder;

/// What keys share if the operator says so. By default each key has its own: a hit, or the time that it
/// saves, tells a key what another one has compiled or installed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SharedCaches {
    /// Compiled programs.
    pub(crate) compiled: bool,
    /// Installed packages.
    pub(crate) packages: bool,
}

impl SharedCaches {
    /// Names the owner of the caches that a request of this key uses. Clients without a key are the
    /// operator, and share with the operator's own commands.
    pub(crate) fn add(self, key: Option<&str>, mut builder: RequestBuilder) -> RequestBuilder {
        let Some(key) = key else { return builder };
        if !self.compiled {
            builder = builder.compile_cache_owner(key);
        }
        if !self.packages {
            builder = builder.package_cache_owner(key);
        }
        builder
    }
}
