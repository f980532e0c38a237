//! Registries with TLS certificates.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use sandbox_core::with_causes;
use sandbox_images::{PlainHttp, PullOptions};

use crate::harness::{Harness, reference};
use crate::registry::{Realm, Registry};
use crate::tar_writer::Tar;

/// A certificate authority.
fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A server configuration with a certificate for this name.
fn server_config(name: &str, issuer: &CertifiedIssuer<'static, KeyPair>) -> Arc<ServerConfig> {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, issuer).unwrap();
    let key = key.serialize_der().try_into().unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key);
    Arc::new(config.unwrap())
}

/// Pulls in a child process that trusts only this authority, which is set by environment variables.
fn pull_trusting(
    harness: &Harness,
    name: &str,
    trusted: &CertifiedIssuer<'static, KeyPair>,
) -> String {
    let trust = harness.path().join("trust.pem");
    fs::write(&trust, trusted.pem()).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::pull_in_a_child_process", "--ignored"])
        .env("SANDBOX_IMAGES_TEST", harness.path())
        .env("SANDBOX_IMAGES_TEST_NAME", name)
        .env("SSL_CERT_FILE", trust)
        .env_remove("SSL_CERT_DIR")
        .status();
    assert!(status.unwrap().success());
    fs::read_to_string(harness.path().join("result")).unwrap()
}

/// The child process of the other tests.
#[test]
#[ignore = "started by another test"]
#[expect(clippy::disallowed_methods, reason = "the parent passes arguments by the environment")]
fn pull_in_a_child_process() {
    let directory = PathBuf::from(std::env::var_os("SANDBOX_IMAGES_TEST").unwrap());
    let name = std::env::var("SANDBOX_IMAGES_TEST_NAME").unwrap();
    let store = sandbox_images::Store::open(&directory.join("store")).unwrap();
    let options =
        PullOptions { plain_http: PlainHttp::Never, max_attempts: 1, ..PullOptions::default() };
    let result = match store.pull(&reference(&name), &options, &mut |_| {}) {
        Ok(_) => "pulled".to_owned(),
        Err(error) => with_causes(&error),
    };
    fs::write(directory.join("result"), result).unwrap();
}

fn registry() -> Registry {
    let layer = Tar::new().file("bin/sh", "shell").end();
    let (mut registry, _) = Registry::with_image("1.0", &[layer]);
    registry.token = Some(Realm::Here);
    registry
}

#[test]
fn a_registry_with_a_trusted_certificate_is_used() {
    let (harness, trusted) = (Harness::new(), authority("trusted"));
    let running = registry().start_with_tls(server_config("localhost", &trusted));
    let name = format!("localhost:{}/ada/tool:1.0", running.address.port());
    assert_eq!(pull_trusting(&harness, &name, &trusted), "pulled");
    assert!(harness.resolve(&name).root.join("bin/sh").exists());
}

#[test]
fn a_registry_without_a_valid_certificate_receives_no_request() {
    let (trusted, other) = (authority("trusted"), authority("other"));
    for (config, reason) in [
        (server_config("localhost", &other), "UnknownIssuer"),
        (server_config("example.org", &trusted), "not valid for name"),
    ] {
        let harness = Harness::new();
        let running = registry().start_with_tls(config);
        let name = format!("localhost:{}/ada/tool:1.0", running.address.port());
        let result = pull_trusting(&harness, &name, &trusted);
        assert!(result.contains(reason), "not '{reason}' but {result}");
        assert!(running.requests().is_empty(), "{:?}", running.requests());
    }
}
