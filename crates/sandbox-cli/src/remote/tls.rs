//! TLS connections to servers whose certificate this machine trusts.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, InvalidMessage, RootCertStore,
    StreamOwned,
};

use super::clock::TimedSocket;

/// An encrypted connection to an authenticated server.
pub(super) type Stream = StreamOwned<ClientConnection, TimedSocket>;

/// The certificate authorities that this machine trusts.
#[derive(Clone, Debug)]
pub(super) struct Trust(Arc<ClientConfig>);

/// This machine has no certificate authorities, so that no server can be trusted.
#[derive(Debug, thiserror::Error)]
#[error("{reason}; install ca-certificates, or name a file of certificates with SSL_CERT_FILE")]
pub(super) struct NothingTrusted {
    reason: String,
}

impl Trust {
    /// Reads the certificates of this machine, or those that `SSL_CERT_FILE` and `SSL_CERT_DIR` name. It
    /// takes some milliseconds.
    pub(super) fn of_this_machine() -> Result<Self, NothingTrusted> {
        let found = rustls_native_certs::load_native_certs();
        let mut roots = RootCertStore::empty();
        // Some that are there may be too old or too odd to be used; the others count.
        roots.add_parsable_certificates(found.certs);
        if roots.is_empty() {
            let first = found.errors.first().map(|error| format!(": {error}"));
            let reason = format!(
                "this machine has no trusted certificates for https{}",
                first.unwrap_or_default()
            );
            return Err(NothingTrusted { reason });
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring has what TLS 1.2 and 1.3 need");
        let mut config = builder.with_root_certificates(roots).with_no_client_auth();
        // It is all that is spoken here.
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self(Arc::new(config)))
    }

    /// Authenticates the server before any data is sent.
    pub(super) fn handshake(&self, host: &str, mut socket: TimedSocket) -> io::Result<Stream> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::other(format!("no certificate can be for '{host}'")))?;
        let connection = ClientConnection::new(Arc::clone(&self.0), name);
        let mut connection = connection.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(describe)?;
        }
        Ok(StreamOwned::new(connection, socket))
    }
}

/// Describes a TLS error in plain words.
fn describe(error: io::Error) -> io::Error {
    let words = match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(reason)) => describe_certificate(reason),
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "it does not use TLS: use an http:// address".to_owned()
        }
        Some(other) => format!("TLS handshake failed: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it closed the connection during the TLS handshake".to_owned()
        }
        None => return error,
    };
    io::Error::new(error.kind(), words)
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
