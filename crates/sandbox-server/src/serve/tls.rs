//! TLS, with a certificate that can be reloaded while the server runs.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context as _, Result};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::{Config, ConfigError, TlsFiles};

/// The TLS acceptor and its certificate.
pub(super) struct Tls {
    acceptor: TlsAcceptor,
    files: TlsFiles,
    current: Arc<Current>,
}

/// The certificate of new connections. Open connections keep theirs.
struct Current(RwLock<Arc<CertifiedKey>>);

/// Validates the configured files.
pub(crate) fn check(config: &Config) -> Result<(), ConfigError> {
    let read = config.tls.as_ref().map(|files| read_certificate(files, &ring::default_provider()));
    read.transpose().map(drop)
}

impl Tls {
    pub(super) fn load(files: &TlsFiles) -> Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let certificate = read_certificate(files, &provider)?;
        let current = Arc::new(Current(RwLock::new(Arc::new(certificate))));
        let config = server_config(provider, Arc::clone(&current))?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), files: files.clone(), current })
    }

    /// Reads the files again. On an error, the previous certificate stays in use.
    pub(super) fn reload(&self) -> Result<(), ConfigError> {
        let certificate = read_certificate(&self.files, &ring::default_provider())?;
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certificate);
        Ok(())
    }

    pub(super) async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<TlsStream<S>> {
        self.acceptor.accept(stream).await
    }
}

fn server_config(provider: Arc<CryptoProvider>, current: Arc<Current>) -> Result<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(provider)
        // TLS 1.2 and 1.3; rustls has no older versions.
        .with_safe_default_protocol_versions()
        .context("failed to set up TLS")?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(current);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

/// Reads a certificate and its key, and checks that they match.
fn read_certificate(
    files: &TlsFiles,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, ConfigError> {
    let in_certificate = invalid_file("tls_cert", &files.certificate);
    let in_key = invalid_file("tls_key", &files.key);
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| in_certificate(describe(error, "certificate")))?;
    if chain.is_empty() {
        return Err(in_certificate(describe(pem::Error::NoItemsFound, "certificate")));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| in_key(describe(error, "private key")))?;
    CertifiedKey::from_der(chain, key, provider).map_err(|error| match error {
        Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => {
            in_key(format!("does not match the certificate {}", files.certificate.display()))
        }
        Error::InvalidCertificate(_) => in_certificate(error.to_string()),
        other => in_key(other.to_string()),
    })
}

fn invalid_file(name: &'static str, path: &Path) -> impl Fn(String) -> ConfigError {
    move |reason| ConfigError::InFile { name, path: path.to_owned(), reason }
}

fn describe(error: pem::Error, expected: &str) -> String {
    match error {
        pem::Error::Io(error) => format!("cannot read it: {error}"),
        pem::Error::NoItemsFound => format!("contains no PEM {expected}"),
        other => format!("is not valid PEM: {other}"),
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Current(…)")
    }
}
