//! Pulls from well-behaved and misbehaving registries.

use std::fs;
use std::time::Duration;

use sandbox_core::with_causes;
use sandbox_images::{Digest, PlainHttp, Progress, PullOptions};

use crate::archives::{INDEX, bytes, descriptor, gzip};
use crate::harness::{Harness, reference};
use crate::registry::{Realm, Registry, RunningRegistry};
use crate::tar_writer::Tar;

fn options() -> PullOptions {
    PullOptions { retry_delay: Duration::from_millis(1), ..PullOptions::default() }
}

fn layers() -> Vec<Vec<u8>> {
    vec![
        Tar::new().file("bin/sh", "shell").end(),
        Tar::new().file("big", vec![b'x'; 200_000]).end(),
    ]
}

fn name(running: &RunningRegistry, version: &str) -> String {
    format!("{}/ada/tool{version}", running.address)
}

fn pull(harness: &Harness, name: &str) -> Result<String, String> {
    pull_with(harness, name, &options())
}

fn pull_with(harness: &Harness, name: &str, options: &PullOptions) -> Result<String, String> {
    let pulled = harness.store.pull(&reference(name), options, &mut |_| {});
    pulled.map(|image| image.digest.to_string()).map_err(|error| with_causes(&error))
}

/// Checks that the image is complete.
fn check_complete(harness: &Harness, name: &str) {
    let image = harness.resolve(name);
    assert_eq!(fs::read_to_string(image.root.join("bin/sh")).unwrap(), "shell");
    assert_eq!(fs::metadata(image.root.join("big")).unwrap().len(), 200_000);
    assert_eq!(image.config.variable("PATH"), Some("/usr/bin:/bin"));
}

/// Checks that the pull fails for this reason, and leaves nothing behind.
fn check_rejected(registry: Registry, version: &str, reason: &str) {
    let (harness, running) = (Harness::new(), registry.start());
    let name = name(&running, version);
    let error = pull(&harness, &name).unwrap_err();
    assert!(error.contains(reason), "not '{reason}' but {error}");
    assert!(error.contains(&name), "the message does not name the image: {error}");
    assert!(harness.store_is_empty() && harness.canary_is_unharmed());
}

#[test]
fn an_image_is_pulled_by_tag_and_by_digest() {
    let (registry, digest) = Registry::with_image("1.0", &layers());
    let running = registry.start();
    for version in [":1.0".to_owned(), format!("@{digest}"), format!(":1.0@{digest}")] {
        let harness = Harness::new();
        let name = name(&running, &version);
        assert_eq!(pull(&harness, &name).unwrap(), digest.to_string());
        check_complete(&harness, &name);
        assert_eq!((harness.contents()["blobs"], harness.contents()["temporary"]), (4, 0));
    }
}

#[test]
fn stored_blobs_are_not_downloaded_again() {
    let (registry, _) = Registry::with_image("1.0", &layers());
    let (harness, running) = (Harness::new(), registry.start());
    for _ in 0..3 {
        pull(&harness, &name(&running, ":1.0")).unwrap();
    }
    assert_eq!((running.count("/manifests/"), running.count("/blobs/")), (3, 3));
}

#[test]
fn compressed_layers_and_indexes_are_supported() {
    let sent: Vec<Vec<u8>> = layers().iter().map(|layer| gzip(layer)).collect();
    let (mut registry, digest) = Registry::with_compressed_image("1.0", &layers(), &sent);
    registry.add_index("1.0");
    let index = Digest::of(&registry.manifests["1.0"].1);
    let running = registry.start();
    for version in [":1.0".to_owned(), format!("@{index}")] {
        let harness = Harness::new();
        assert_eq!(pull(&harness, &name(&running, &version)).unwrap(), digest.to_string());
        check_complete(&harness, &name(&running, &version));
    }
}

#[test]
fn a_token_is_requested_from_the_token_server() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    registry.token = Some(Realm::Here);
    let (harness, running) = (Harness::new(), registry.start());
    pull(&harness, &name(&running, ":1.0")).unwrap();
    check_complete(&harness, &name(&running, ":1.0"));
    let requests = running.requests();
    let token = requests.iter().find(|request| request.path.starts_with("/token")).unwrap();
    assert!(token.path.contains("scope=repository%3Aada%2Ftool%3Apull"), "{token:?}");
    assert_eq!(running.count("/token"), 1, "one token is used for all requests");
}

#[test]
fn a_token_server_without_tls_is_not_used() {
    for url in ["http://example.org/token", "file:///etc/passwd", "nonsense"] {
        let (mut registry, _) = Registry::with_image("1.0", &layers());
        registry.token = Some(Realm::At(url.to_owned()));
        check_rejected(registry, ":1.0", "token server without TLS");
    }
}

#[test]
fn a_redirect_is_followed_without_the_token() {
    let (elsewhere, _) = Registry::with_image("1.0", &layers());
    let elsewhere = elsewhere.start();
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    registry.token = Some(Realm::Here);
    registry.redirect = Some(format!("http://{}", elsewhere.address));
    let (harness, running) = (Harness::new(), registry.start());
    pull(&harness, &name(&running, ":1.0")).unwrap();
    check_complete(&harness, &name(&running, ":1.0"));
    assert_eq!(elsewhere.count("/elsewhere/"), 3);
    assert!(
        elsewhere.requests().iter().all(|request| !request.headers.contains_key("authorization"))
    );
    assert!(running.requests().iter().any(|request| request.headers.contains_key("authorization")));
}

#[test]
fn a_redirect_to_a_url_without_tls_is_not_followed() {
    for (url, reason) in [
        ("http://example.org", "without TLS"),
        ("http://169.254.169.254", "without TLS"),
        ("file:///etc", "responded with 307"),
    ] {
        let (mut registry, _) = Registry::with_image("1.0", &layers());
        registry.redirect = Some(url.to_owned());
        check_rejected(registry, ":1.0", reason);
    }
}

#[test]
fn a_redirect_loop_ends() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    let (mut circle, _) = Registry::with_image("1.0", &layers());
    // Redirects to a registry that redirects to itself.
    circle.redirect = Some("/v2/ada/tool/blobs".to_owned());
    let circle = circle.start();
    registry.redirect = Some(format!("http://{}/v2/x/blobs", circle.address));
    check_rejected(registry, ":1.0", "too many redirects");
}

#[test]
fn an_interrupted_transfer_is_resumed() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    registry.interruptions = 3;
    let (harness, running) = (Harness::new(), registry.start());
    let name = name(&running, ":1.0");
    let mut reported = Vec::new();
    harness
        .store
        .pull(&reference(&name), &options(), &mut |progress| reported.push(progress))
        .unwrap();
    check_complete(&harness, &name);
    let retried =
        reported.iter().filter(|progress| matches!(progress, Progress::Retrying { .. })).count();
    assert_eq!(retried, 3);
    assert!(running.requests().iter().any(|request| request.headers.contains_key("range")));
}

#[test]
fn a_registry_without_range_requests_sends_the_blob_again() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    (registry.interruptions, registry.ranges) = (2, false);
    let (harness, running) = (Harness::new(), registry.start());
    pull(&harness, &name(&running, ":1.0")).unwrap();
    check_complete(&harness, &name(&running, ":1.0"));
}

#[test]
fn a_pull_fails_if_every_transfer_is_interrupted() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    (registry.interruptions, registry.ranges) = (usize::MAX, false);
    check_rejected(registry, ":1.0", "interrupted the transfer");
}

#[test]
fn a_stalled_transfer_is_retried() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    (registry.interruptions, registry.stalls) = (1, true);
    let (harness, running) = (Harness::new(), registry.start());
    let options = PullOptions { read_timeout: Duration::from_secs(2), ..options() };
    pull_with(&harness, &name(&running, ":1.0"), &options).unwrap();
    check_complete(&harness, &name(&running, ":1.0"));
}

#[test]
fn a_pull_ends_at_its_timeout() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    (registry.interruptions, registry.stalls) = (usize::MAX, true);
    let (harness, running) = (Harness::new(), registry.start());
    let (read_timeout, timeout) = (Duration::from_millis(100), Duration::from_millis(250));
    let options = PullOptions { read_timeout, timeout, max_attempts: u32::MAX, ..options() };
    let error = pull_with(&harness, &name(&running, ":1.0"), &options).unwrap_err();
    assert!(
        error.contains("did not deliver") || error.contains("interrupted the transfer"),
        "{error}"
    );
    assert!(harness.store_is_empty());
}

#[test]
fn transient_errors_are_retried() {
    for status in [500, 503, 429] {
        let (mut registry, _) = Registry::with_image("1.0", &layers());
        registry.failures = Some((status, 2));
        let (harness, running) = (Harness::new(), registry.start());
        pull(&harness, &name(&running, ":1.0")).unwrap();
        check_complete(&harness, &name(&running, ":1.0"));
    }
}

#[test]
fn content_with_a_wrong_digest_or_size_is_rejected() {
    let good = || Registry::with_image("1.0", &layers()).0;
    let layer = Digest::of(&layers()[1]).to_string();
    let mut other = layers()[1].clone();
    other[600] ^= 1;
    let mut registry = good();
    registry.blobs.insert(layer.clone(), other.clone());
    check_rejected(registry, ":1.0", "digest mismatch of layer 2");
    let mut registry = good();
    registry.blobs.insert(layer.clone(), [&layers()[1][..], b"more"].concat());
    check_rejected(registry, ":1.0", "more bytes than the manifest declares");
    let mut registry = good();
    registry.blobs.insert(layer.clone(), layers()[1][..5000].to_vec());
    check_rejected(registry, ":1.0", "interrupted the transfer");
    let mut registry = good();
    registry.blobs.remove(&layer);
    check_rejected(registry, ":1.0", "does not have the image");
    let (mut registry, digest) = Registry::with_image("1.0", &layers());
    let tampered = String::from_utf8(registry.manifests["1.0"].1.clone()).unwrap() + " ";
    registry.manifests.insert(digest.to_string(), (String::new(), tampered.into_bytes()));
    check_rejected(registry, &format!("@{digest}"), "digest mismatch of the manifest");
}

#[test]
fn manifest_sizes_and_index_depth_are_limited() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    registry.endless = true;
    check_rejected(registry, ":1.0", "the size of the manifest in bytes exceeds");
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    for _ in 0..4 {
        let inner = descriptor(INDEX, &registry.manifests["1.0"].1);
        let index = serde_json::json!({ "schemaVersion": 2, "manifests": [inner] });
        registry.add("1.0", INDEX, &bytes(&index));
    }
    check_rejected(registry, ":1.0", "the nesting depth of indexes");
}

#[test]
fn error_responses_are_reported() {
    for (status, reason) in [
        (403, "logins are not supported"),
        (401, "logins are not supported"),
        (404, "does not have the image"),
        (418, "responded with 418"),
        (500, "responded with 500"),
    ] {
        let (mut registry, _) = Registry::with_image("1.0", &layers());
        registry.failures = Some((status, usize::MAX));
        check_rejected(registry, ":1.0", reason);
    }
    check_rejected(Registry::default(), ":none", "does not have the image");
}

#[test]
fn hostile_layers_from_a_registry_are_rejected() {
    let layer = Tar::new().symlink("out", "/tmp").file("out/x", "").end();
    let (registry, _) = Registry::with_image("1.0", &[layer]);
    check_rejected(registry, ":1.0", "is below a link whose target is not in the image");
}

#[test]
fn no_request_is_sent_without_tls_unless_permitted() {
    let (registry, _) = Registry::with_image("1.0", &layers());
    let running = registry.start();
    let harness = Harness::new();
    let options = PullOptions { plain_http: PlainHttp::Never, max_attempts: 1, ..options() };
    let error = pull_with(&harness, &name(&running, ":1.0"), &options).unwrap_err();
    assert!(error.contains("cannot be reached"), "{error}");
    assert!(
        running.requests().iter().all(|request| !request.path.starts_with('/')),
        "{:?}",
        running.requests()
    );
}

#[test]
fn pull_works_inside_an_async_runtime() {
    let (registry, _) = Registry::with_image("1.0", &layers());
    let (harness, running) = (Harness::new(), registry.start());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { pull(&harness, &name(&running, ":1.0")).unwrap() });
    check_complete(&harness, &name(&running, ":1.0"));
}
