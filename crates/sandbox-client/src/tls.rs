//! TLS connections to servers whose certificate this machine trusts.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{CertificateError, ClientConfig, Error, InvalidMessage, RootCertStore};

use crate::ServerUrl;

/// This machine has no certificate authorities, so that no server can be trusted.
#[derive(Debug, thiserror::Error)]
#[error(
    "this machine has no trusted certificates for https{reason}; install ca-certificates, or name a file of \
     certificates with SSL_CERT_FILE"
)]
pub struct NoTrustedCertificates {
    reason: String,
}

/// Trusts the authorities of this machine, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name. Reading them takes
/// some milliseconds, so an `http://` address trusts none.
pub(crate) fn config(url: &ServerUrl) -> Result<ClientConfig, NoTrustedCertificates> {
    let mut roots = RootCertStore::empty();
    if url.is_https() {
        let found = rustls_native_certs::load_native_certs();
        // Some may be too old or too odd to be parsed; the others count.
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let reason = found.errors.first().map(|error| format!(": {error}"));
            return Err(NoTrustedCertificates { reason: reason.unwrap_or_default() });
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring supports TLS 1.2 and 1.3");
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Describes a failed handshake in plain words.
pub(crate) fn describe(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(reason) => describe_certificate(reason),
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "it does not use TLS: use an http:// address".to_owned()
        }
        other => format!("TLS handshake failed: {other}"),
    }
}

fn describe_certificate(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => {
            "this machine does not trust its certificate: install its authority, or name a file of \
             authorities with SSL_CERT_FILE"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: check the clock of this machine".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host name".to_owned()
        }
        other => format!("its certificate is not valid: {other}"),
    }
}
