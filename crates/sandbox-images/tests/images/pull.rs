//! Images from a registry, a good one and bad ones.

use std::fs;
use std::time::Duration;

use sandbox_core::with_causes;
use sandbox_images::{Digest, PlainHttp, Progress, PullOptions};

use crate::archives::{INDEX, bytes, descriptor, gzip};
use crate::arena::{Arena, reference};
use crate::registry::{Realm, Registry, Running};
use crate::tar_writer::Tar;

fn options() -> PullOptions {
    PullOptions { pause: Duration::from_millis(1), ..PullOptions::default() }
}

fn layers() -> Vec<Vec<u8>> {
    vec![
        Tar::new().file("bin/sh", "shell").end(),
        Tar::new().file("big", vec![b'x'; 200_000]).end(),
    ]
}

fn name(running: &Running, version: &str) -> String {
    format!("{}/ada/tool{version}", running.address)
}

fn pull(arena: &Arena, name: &str) -> Result<String, String> {
    pull_with(arena, name, &options())
}

fn pull_with(arena: &Arena, name: &str, options: &PullOptions) -> Result<String, String> {
    let pulled = arena.store.pull(&reference(name), options, &mut |_| {});
    pulled.map(|kept| kept.digest.to_string()).map_err(|error| with_causes(&error))
}

/// It is here, and can be used.
fn is_whole(arena: &Arena, name: &str) {
    let image = arena.resolve(name);
    assert_eq!(fs::read_to_string(image.root.join("bin/sh")).unwrap(), "shell");
    assert_eq!(fs::metadata(image.root.join("big")).unwrap().len(), 200_000);
    assert_eq!(image.config.variable("PATH"), Some("/usr/bin:/bin"));
}

/// It is refused for this reason, and nothing is left of it.
fn is_refused(registry: Registry, version: &str, reason: &str) {
    let (arena, running) = (Arena::new(), registry.start());
    let name = name(&running, version);
    let error = pull(&arena, &name).unwrap_err();
    assert!(error.contains(reason), "not '{reason}' but {error}");
    assert!(error.contains(&name), "it does not say which image: {error}");
    assert!(arena.store_is_empty() && arena.canary_is_unharmed());
}

#[test]
fn an_image_is_pulled_by_tag_and_by_digest() {
    let (registry, digest) = Registry::with_image("1.0", &layers());
    let running = registry.start();
    for version in [":1.0".to_owned(), format!("@{digest}"), format!(":1.0@{digest}")] {
        let arena = Arena::new();
        let name = name(&running, &version);
        assert_eq!(pull(&arena, &name).unwrap(), digest.to_string());
        is_whole(&arena, &name);
        assert_eq!((arena.contents()["blobs"], arena.contents()["temporary"]), (4, 0));
    }
}

#[test]
fn what_is_here_is_not_fetched_again() {
    let (registry, _) = Registry::with_image("1.0", &layers());
    let (arena, running) = (Arena::new(), registry.start());
    for _ in 0..3 {
        pull(&arena, &name(&running, ":1.0")).unwrap();
    }
    assert_eq!((running.times("/manifests/"), running.times("/blobs/")), (3, 3));
}

#[test]
fn compressed_layers_and_an_index_are_no_difference() {
    let sent: Vec<Vec<u8>> = layers().iter().map(|layer| gzip(layer)).collect();
    let (mut registry, digest) = Registry::with_sent_image("1.0", &layers(), &sent);
    registry.behind_index("1.0");
    let index = Digest::of(&registry.manifests["1.0"].1);
    let running = registry.start();
    for version in [":1.0".to_owned(), format!("@{index}")] {
        let arena = Arena::new();
        assert_eq!(pull(&arena, &name(&running, &version)).unwrap(), digest.to_string());
        is_whole(&arena, &name(&running, &version));
    }
}

#[test]
fn a_token_is_got_where_the_registry_says() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    registry.token = Some(Realm::Here);
    let (arena, running) = (Arena::new(), registry.start());
    pull(&arena, &name(&running, ":1.0")).unwrap();
    is_whole(&arena, &name(&running, ":1.0"));
    let asked = running.asked();
    let token = asked.iter().find(|asked| asked.path.starts_with("/token")).unwrap();
    assert!(token.path.contains("scope=repository%3Aada%2Ftool%3Apull"), "{token:?}");
    assert_eq!(running.times("/token"), 1, "one is enough for all");
}

#[test]
fn a_token_is_not_got_from_anywhere() {
    for place in ["http://example.org/token", "file:///etc/passwd", "nonsense"] {
        let (mut registry, _) = Registry::with_image("1.0", &layers());
        registry.token = Some(Realm::At(place.to_owned()));
        is_refused(registry, ":1.0", "from a place without TLS");
    }
}

#[test]
fn a_redirect_is_followed_and_the_token_stays_behind() {
    let (elsewhere, _) = Registry::with_image("1.0", &layers());
    let elsewhere = elsewhere.start();
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    registry.token = Some(Realm::Here);
    registry.redirect = Some(format!("http://{}", elsewhere.address));
    let (arena, running) = (Arena::new(), registry.start());
    pull(&arena, &name(&running, ":1.0")).unwrap();
    is_whole(&arena, &name(&running, ":1.0"));
    assert_eq!(elsewhere.times("/elsewhere/"), 3);
    assert!(elsewhere.asked().iter().all(|asked| !asked.headers.contains_key("authorization")));
    assert!(running.asked().iter().any(|asked| asked.headers.contains_key("authorization")));
}

#[test]
fn a_redirect_is_not_followed_anywhere() {
    for (place, reason) in [
        ("http://example.org", "without TLS"),
        ("http://169.254.169.254", "without TLS"),
        ("file:///etc", "answered with 307"),
    ] {
        let (mut registry, _) = Registry::with_image("1.0", &layers());
        registry.redirect = Some(place.to_owned());
        is_refused(registry, ":1.0", reason);
    }
}

#[test]
fn a_redirect_in_a_circle_ends() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    let (mut circle, _) = Registry::with_image("1.0", &layers());
    // It leads to a place that leads to itself.
    circle.redirect = Some("/v2/ada/tool/blobs".to_owned());
    let circle = circle.start();
    registry.redirect = Some(format!("http://{}/v2/x/blobs", circle.address));
    is_refused(registry, ":1.0", "from one place to the next");
}

#[test]
fn a_transfer_that_breaks_off_is_continued() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    registry.cuts = 3;
    let (arena, running) = (Arena::new(), registry.start());
    let name = name(&running, ":1.0");
    let mut told = Vec::new();
    arena.store.pull(&reference(&name), &options(), &mut |progress| told.push(progress)).unwrap();
    is_whole(&arena, &name);
    let retried = told.iter().filter(|told| matches!(told, Progress::Retrying { .. })).count();
    assert_eq!(retried, 3);
    assert!(running.asked().iter().any(|asked| asked.headers.contains_key("range")));
}

#[test]
fn a_registry_that_cannot_continue_sends_all_of_it_again() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    (registry.cuts, registry.continues) = (2, false);
    let (arena, running) = (Arena::new(), registry.start());
    pull(&arena, &name(&running, ":1.0")).unwrap();
    is_whole(&arena, &name(&running, ":1.0"));
}

#[test]
fn a_registry_that_breaks_off_for_ever_is_given_up() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    (registry.cuts, registry.continues) = (usize::MAX, false);
    is_refused(registry, ":1.0", "broke off");
}

#[test]
fn a_registry_that_stops_sending_is_not_waited_for() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    (registry.cuts, registry.stalls) = (1, true);
    let (arena, running) = (Arena::new(), registry.start());
    let options = PullOptions { stall: Duration::from_secs(2), ..options() };
    pull_with(&arena, &name(&running, ":1.0"), &options).unwrap();
    is_whole(&arena, &name(&running, ":1.0"));
}

#[test]
fn patience_ends() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    (registry.cuts, registry.stalls) = (usize::MAX, true);
    let (arena, running) = (Arena::new(), registry.start());
    let (stall, patience) = (Duration::from_millis(100), Duration::from_millis(250));
    let options = PullOptions { stall, patience, tries: u32::MAX, ..options() };
    let error = pull_with(&arena, &name(&running, ":1.0"), &options).unwrap_err();
    assert!(error.contains("took longer") || error.contains("broke off"), "{error}");
    assert!(arena.store_is_empty());
}

#[test]
fn a_registry_that_is_busy_is_asked_again() {
    for status in [500, 503, 429] {
        let (mut registry, _) = Registry::with_image("1.0", &layers());
        registry.refuses = Some((status, 2));
        let (arena, running) = (Arena::new(), registry.start());
        pull(&arena, &name(&running, ":1.0")).unwrap();
        is_whole(&arena, &name(&running, ":1.0"));
    }
}

#[test]
fn content_that_is_not_what_was_asked_for_is_refused() {
    let good = || Registry::with_image("1.0", &layers()).0;
    let layer = Digest::of(&layers()[1]).to_string();
    let mut other = layers()[1].clone();
    other[600] ^= 1;
    let mut registry = good();
    registry.blobs.insert(layer.clone(), other.clone());
    is_refused(registry, ":1.0", "layer 2 is not what it should be");
    let mut registry = good();
    registry.blobs.insert(layer.clone(), [&layers()[1][..], b"more"].concat());
    is_refused(registry, ":1.0", "sends more than its manifest says");
    let mut registry = good();
    registry.blobs.insert(layer.clone(), layers()[1][..5000].to_vec());
    is_refused(registry, ":1.0", "broke off");
    let mut registry = good();
    registry.blobs.remove(&layer);
    is_refused(registry, ":1.0", "does not have it");
    let (mut registry, digest) = Registry::with_image("1.0", &layers());
    let tampered = String::from_utf8(registry.manifests["1.0"].1.clone()).unwrap() + " ";
    registry.manifests.insert(digest.to_string(), (String::new(), tampered.into_bytes()));
    is_refused(registry, &format!("@{digest}"), "its manifest is not what it should be");
}

#[test]
fn a_registry_cannot_fill_memory_or_lead_in_circles() {
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    registry.endless = true;
    is_refused(registry, ":1.0", "the size of its manifest in bytes is over");
    let (mut registry, _) = Registry::with_image("1.0", &layers());
    for _ in 0..4 {
        let inner = descriptor(INDEX, &registry.manifests["1.0"].1);
        let index = serde_json::json!({ "schemaVersion": 2, "manifests": [inner] });
        registry.add("1.0", INDEX, &bytes(&index));
    }
    is_refused(registry, ":1.0", "the number of indexes in one another");
}

#[test]
fn a_registry_that_says_no_is_quoted() {
    for (status, reason) in [
        (403, "logins are not supported"),
        (401, "logins are not supported"),
        (404, "does not have it"),
        (418, "answered with 418"),
        (500, "answered with 500"),
    ] {
        let (mut registry, _) = Registry::with_image("1.0", &layers());
        registry.refuses = Some((status, usize::MAX));
        is_refused(registry, ":1.0", reason);
    }
    is_refused(Registry::default(), ":none", "does not have it");
}

#[test]
fn hostile_layers_are_refused_however_they_come() {
    let layer = Tar::new().symlink("out", "/tmp").file("out/x", "").end();
    let (registry, _) = Registry::with_image("1.0", &[layer]);
    is_refused(registry, ":1.0", "lies below a link that leads nowhere");
}

#[test]
fn nothing_is_said_without_tls_but_on_this_machine() {
    let (registry, _) = Registry::with_image("1.0", &layers());
    let running = registry.start();
    let arena = Arena::new();
    let options = PullOptions { plain_http: PlainHttp::Never, tries: 1, ..options() };
    let error = pull_with(&arena, &name(&running, ":1.0"), &options).unwrap_err();
    assert!(error.contains("cannot be reached"), "{error}");
    assert!(
        running.asked().iter().all(|asked| !asked.path.starts_with('/')),
        "{:?}",
        running.asked()
    );
}

#[test]
fn it_works_inside_somebody_elses_runtime() {
    let (registry, _) = Registry::with_image("1.0", &layers());
    let (arena, running) = (Arena::new(), registry.start());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { pull(&arena, &name(&running, ":1.0")).unwrap() });
    is_whole(&arena, &name(&running, ":1.0"));
}
