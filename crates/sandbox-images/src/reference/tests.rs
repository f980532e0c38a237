use super::*;

const DIGITS: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn names_without_a_host_refer_to_docker_hub() {
    for (text, canonical, shown) in [
        ("python", "docker.io/library/python:latest", "python:latest"),
        ("python:3.12", "docker.io/library/python:3.12", "python:3.12"),
        ("docker.io/python:3.12", "docker.io/library/python:3.12", "python:3.12"),
        ("index.docker.io/library/python", "docker.io/library/python:latest", "python:latest"),
        ("ada/tool:v1", "docker.io/ada/tool:v1", "ada/tool:v1"),
        ("ghcr.io/ada/tool:v1", "ghcr.io/ada/tool:v1", "ghcr.io/ada/tool:v1"),
        ("localhost/x", "localhost/x:latest", "localhost/x:latest"),
        ("127.0.0.1:5000/a/b/c:1", "127.0.0.1:5000/a/b/c:1", "127.0.0.1:5000/a/b/c:1"),
        ("[::1]:5000/x", "[::1]:5000/x:latest", "[::1]:5000/x:latest"),
        ("a_b/c__d--e:T", "docker.io/a_b/c__d--e:T", "a_b/c__d--e:T"),
    ] {
        let reference: Reference = text.parse().unwrap();
        assert_eq!(reference.canonical(), canonical);
        assert_eq!(reference.to_string(), shown);
        assert_eq!(shown.parse(), Ok(reference));
    }
}

#[test]
fn a_digest_takes_precedence_over_a_tag() {
    for text in [format!("python@sha256:{DIGITS}"), format!("python:3@sha256:{DIGITS}")] {
        let reference: Reference = text.parse().unwrap();
        assert_eq!(reference.to_string(), format!("python@sha256:{DIGITS}"));
    }
}

#[test]
fn the_api_of_docker_hub_has_another_address() {
    let address = |text: &str| text.parse::<Reference>().unwrap().address().to_owned();
    assert_eq!(address("python"), "registry-1.docker.io");
    assert_eq!(address("quay.io:444/x/y"), "quay.io:444");
}

#[test]
fn registries_on_loopback_are_recognized() {
    let loopback = |text: &str| text.parse::<Reference>().unwrap().is_on_loopback();
    for text in
        ["localhost/x", "localhost:5000/x", "127.0.0.1:5000/x", "127.9.9.9/x", "[::1]:5000/x"]
    {
        assert!(loopback(text), "{text}");
    }
    for text in ["python", "128.0.0.1:5000/x", "localhost.example.org/x", "127.0.0.1.example.org/x"]
    {
        assert!(!loopback(text), "{text}");
    }
}

#[test]
fn invalid_names_are_rejected_with_a_reason() {
    let long = format!("a/{}", "b".repeat(300));
    for (text, reason) in [
        ("", "a name consists"),
        ("../x", "invalid registry host"),
        ("a/../b", "a name consists"),
        ("x..y", "a name consists"),
        ("ghcr.io/../../etc/passwd", "a name consists"),
        ("Python", "a name consists"),
        ("a//b", "a name consists"),
        ("/a", "a name consists"),
        ("a/", "a name consists"),
        ("a b", "a name consists"),
        (&long, "a name consists"),
        ("python:", "a tag consists"),
        ("python:../x", "invalid registry host"),
        ("python:.x", "a tag consists"),
        ("python:a b", "a tag consists"),
        ("..:5000/x", "invalid registry host"),
        ("host:0/x", "invalid registry host"),
        ("host:99999/x", "invalid registry host"),
        ("-x.org/x", "invalid registry host"),
        ("[::zz]:5000/x", "invalid registry host"),
        ("python@sha256:abc", "a digest"),
        ("python@sha256:../../x", "a digest"),
        ("https://ghcr.io/x", "invalid registry host"),
    ] {
        let error = text.parse::<Reference>().unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}
