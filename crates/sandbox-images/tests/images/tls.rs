//! A registry that must prove who it is.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use sandbox_core::with_causes;
use sandbox_images::{PlainHttp, PullOptions};

use crate::arena::{Arena, reference};
use crate::registry::{Realm, Registry};
use crate::tar_writer::Tar;

/// Somebody who vouches for registries.
fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// What a registry with this name needs to prove it.
fn proof(name: &str, issuer: &CertifiedIssuer<'static, KeyPair>) -> Arc<ServerConfig> {
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

/// Pulls in a process that trusts this authority and no other, since that is said by the environment.
fn pull_trusting(arena: &Arena, name: &str, trusted: &CertifiedIssuer<'static, KeyPair>) -> String {
    let trust = arena.path().join("trust.pem");
    fs::write(&trust, trusted.pem()).unwrap();
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::pull_in_a_process_of_its_own", "--ignored"])
        .env("SANDBOX_IMAGES_TEST", arena.path())
        .env("SANDBOX_IMAGES_TEST_NAME", name)
        .env("SSL_CERT_FILE", trust)
        .env_remove("SSL_CERT_DIR")
        .status();
    assert!(status.unwrap().success());
    fs::read_to_string(arena.path().join("answer")).unwrap()
}

/// Not a test by itself: what the process of the others does.
#[test]
#[ignore = "started by another test"]
#[expect(clippy::disallowed_methods, reason = "this is how it is told what to do")]
fn pull_in_a_process_of_its_own() {
    let place = PathBuf::from(std::env::var_os("SANDBOX_IMAGES_TEST").unwrap());
    let name = std::env::var("SANDBOX_IMAGES_TEST_NAME").unwrap();
    let store = sandbox_images::Store::open(&place.join("store")).unwrap();
    let options = PullOptions { plain_http: PlainHttp::Never, tries: 1, ..PullOptions::default() };
    let answer = match store.pull(&reference(&name), &options, &mut |_| {}) {
        Ok(_) => "pulled".to_owned(),
        Err(error) => with_causes(&error),
    };
    fs::write(place.join("answer"), answer).unwrap();
}

fn registry() -> Registry {
    let layer = Tar::new().file("bin/sh", "shell").end();
    let (mut registry, _) = Registry::with_image("1.0", &[layer]);
    registry.token = Some(Realm::Here);
    registry
}

#[test]
fn a_registry_that_proves_who_it_is_is_pulled_from() {
    let (arena, trusted) = (Arena::new(), authority("trusted"));
    let running = registry().start_with_tls(proof("localhost", &trusted));
    let name = format!("localhost:{}/ada/tool:1.0", running.address.port());
    assert_eq!(pull_trusting(&arena, &name, &trusted), "pulled");
    assert!(arena.resolve(&name).root.join("bin/sh").exists());
}

#[test]
fn a_registry_that_does_not_is_not() {
    let (trusted, other) = (authority("trusted"), authority("other"));
    for (proof, reason) in [
        (proof("localhost", &other), "UnknownIssuer"),
        (proof("example.org", &trusted), "not valid for name"),
    ] {
        let arena = Arena::new();
        let running = registry().start_with_tls(proof);
        let name = format!("localhost:{}/ada/tool:1.0", running.address.port());
        let answer = pull_trusting(&arena, &name, &trusted);
        assert!(answer.contains(reason), "not '{reason}' but {answer}");
        assert!(running.asked().is_empty(), "it was asked: {:?}", running.asked());
    }
}
