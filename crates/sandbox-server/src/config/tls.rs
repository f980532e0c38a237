use std::path::PathBuf;

use super::ConfigError;
use super::layers::Layer;

/// Where the server's certificate and its key lie, both as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TlsFiles {
    /// The certificate, and behind it those that lead to one the clients know.
    pub(crate) certificate: PathBuf,
    /// The private key of the first.
    pub(crate) key: PathBuf,
}

/// The files, if there are any: one without the other is half a sentence.
pub(super) fn files(settled: &Layer) -> Result<Option<TlsFiles>, ConfigError> {
    let certificate = settled.read("tls_cert", path)?;
    let key = settled.read("tls_key", path)?;
    let alone = |other| move |_: &str| Err(format!("goes together with {other}, which is not set"));
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => Ok(Some(TlsFiles { certificate, key })),
        (Some(_), None) => settled.read("tls_cert", alone("tls_key")),
        (None, Some(_)) => settled.read("tls_key", alone("tls_cert")),
    }
}

fn path(text: &str) -> Result<Option<PathBuf>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let absolute = std::path::absolute(text);
    absolute.map(Some).map_err(|error| format!("cannot tell where '{text}' is: {error}"))
}
