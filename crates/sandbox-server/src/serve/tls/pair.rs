use std::path::Path;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};

use crate::config::{ConfigError, TlsFiles};

/// Reads a certificate and its key, and makes sure that they belong together.
pub(super) fn read(
    files: &TlsFiles,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, ConfigError> {
    let in_certificate = wrong("tls_cert", &files.certificate);
    let in_key = wrong("tls_key", &files.key);
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| in_certificate(in_words(error, "certificate")))?;
    if chain.is_empty() {
        return Err(in_certificate(in_words(pem::Error::NoItemsFound, "certificate")));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| in_key(in_words(error, "private key")))?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            in_key(format!("is not the key of {}", files.certificate.display()))
        }
        Error::InvalidCertificate(_) => in_certificate(error.to_string()),
        other => in_key(other.to_string()),
    })
}

fn wrong(name: &'static str, path: &Path) -> impl Fn(String) -> ConfigError {
    move |reason| ConfigError::InFile { name, path: path.to_owned(), reason }
}

fn in_words(error: pem::Error, wanted: &str) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot be read: {error}"),
        pem::Error::NoItemsFound => format!("there is no {wanted} in it, as PEM has it"),
        other => format!("is not PEM: {other}"),
    }
}
