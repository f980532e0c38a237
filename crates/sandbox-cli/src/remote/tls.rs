//! `https`: only servers that somebody this machine trusts vouches for are spoken to.

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Error, InvalidMessage, RootCertStore,
    StreamOwned,
};

use super::clock::TimedSocket;

/// A connection that is proven and private.
pub(super) type Stream = StreamOwned<ClientConnection, TimedSocket>;

/// Whom this machine trusts to vouch for servers.
#[derive(Clone, Debug)]
pub(super) struct Trust(Arc<ClientConfig>);

/// There is nobody to trust, so that no server could be.
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
            let reason = format!("https needs certificates to trust{}", first.unwrap_or_default());
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

    /// Makes sure who is there before anything is sent.
    pub(super) fn shake_hands(&self, host: &str, mut socket: TimedSocket) -> io::Result<Stream> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::other(format!("no certificate can be for '{host}'")))?;
        let connection = ClientConnection::new(Arc::clone(&self.0), name);
        let mut connection = connection.map_err(io::Error::other)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(in_words)?;
        }
        Ok(StreamOwned::new(connection, socket))
    }
}

/// What went wrong, for somebody who has not read the standard.
fn in_words(error: io::Error) -> io::Error {
    let words = match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(Error::InvalidCertificate(reason)) => why_not(reason),
        Some(Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            "it does not speak TLS: is it an http:// address?".to_owned()
        }
        Some(other) => format!("no TLS connection could be made: {other}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => {
            "it hung up while TLS was being agreed on".to_owned()
        }
        None => return error,
    };
    io::Error::new(error.kind(), words)
}

fn why_not(reason: &CertificateError) -> String {
    match reason {
        CertificateError::UnknownIssuer => {
            "nobody this machine trusts vouches for its certificate; SSL_CERT_FILE names a file of \
             others to trust"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired".to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet: is the clock right?".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name".to_owned()
        }
        other => format!("its certificate is not valid: {other}"),
    }
}
