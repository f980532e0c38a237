//! TLS with a certificate from files, which can be replaced while the server runs.

mod pair;

use std::fmt;
use std::io;
use std::sync::{Arc, PoisonError, RwLock};

use anyhow::{Context as _, Result};
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, ring};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::{Config, ConfigError, TlsFiles};

/// What a server needs to speak TLS.
pub(super) struct Tls {
    acceptor: TlsAcceptor,
    files: TlsFiles,
    current: Arc<Current>,
}

/// The certificate that new connections get; those there are keep theirs.
struct Current(RwLock<Arc<CertifiedKey>>);

/// Reads the files, if any are set, only to say what is wrong with them.
pub(crate) fn check(config: &Config) -> Result<(), ConfigError> {
    let read = config.tls.as_ref().map(|files| pair::read(files, &ring::default_provider()));
    read.transpose().map(drop)
}

impl Tls {
    pub(super) fn load(files: &TlsFiles) -> Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let pair = pair::read(files, &provider)?;
        let current = Arc::new(Current(RwLock::new(Arc::new(pair))));
        let config = server_config(provider, Arc::clone(&current))?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), files: files.clone(), current })
    }

    /// Reads the files again. If something is wrong with them, what was read before stays.
    pub(super) fn reload(&self) -> Result<(), ConfigError> {
        let pair = pair::read(&self.files, &ring::default_provider())?;
        *self.current.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(pair);
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
        // TLS 1.2 and 1.3; what is older is not in rustls.
        .with_safe_default_protocol_versions()
        .context("TLS cannot be set up")?;
    let mut config = builder.with_no_client_auth().with_cert_resolver(current);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
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
