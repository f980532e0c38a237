use super::*;

const DIGITS: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn short_names_are_those_of_docker_hub() {
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
fn a_digest_says_more_than_a_tag() {
    for text in [format!("python@sha256:{DIGITS}"), format!("python:3@sha256:{DIGITS}")] {
        let reference: Reference = text.parse().unwrap();
        assert_eq!(reference.to_string(), format!("python@sha256:{DIGITS}"));
    }
}

#[test]
fn docker_hub_is_reached_elsewhere_than_it_is_called() {
    let address = |text: &str| text.parse::<Reference>().unwrap().address().to_owned();
    assert_eq!(address("python"), "registry-1.docker.io");
    assert_eq!(address("quay.io:444/x/y"), "quay.io:444");
}

#[test]
fn loopback_is_told_from_everything_else() {
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
fn what_names_no_image_is_refused_with_a_reason() {
    let long = format!("a/{}", "b".repeat(300));
    for (text, reason) in [
        ("", "a name has"),
        ("../x", "no host"),
        ("a/../b", "a name has"),
        ("x..y", "a name has"),
        ("ghcr.io/../../etc/passwd", "a name has"),
        ("Python", "a name has"),
        ("a//b", "a name has"),
        ("/a", "a name has"),
        ("a/", "a name has"),
        ("a b", "a name has"),
        (&long, "a name has"),
        ("python:", "a tag has"),
        ("python:../x", "no host"),
        ("python:.x", "a tag has"),
        ("python:a b", "a tag has"),
        ("..:5000/x", "no host"),
        ("host:0/x", "no host"),
        ("host:99999/x", "no host"),
        ("-x.org/x", "no host"),
        ("[::zz]:5000/x", "no host"),
        ("python@sha256:abc", "a digest"),
        ("python@sha256:../../x", "a digest"),
        ("https://ghcr.io/x", "no host"),
    ] {
        let error = text.parse::<Reference>().unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}
