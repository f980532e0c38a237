//! TLS by file, with clients that were not written here.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rcgen::{CertificateParams, CertifiedIssuer, DnType, KeyPair};
use rustix::process::Signal;
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;
use tempfile::TempDir;

use crate::server::{SOON, Server, command, output};
use crate::wire::Wire;

/// Somebody who vouches for servers, and the files of one.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("no names are right names");
        // Those of one name pass for the same.
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it can be signed");
        let directory = tempfile::tempdir().expect("there is room for temporary files");
        let authority = Self { issuer, directory };
        write(&authority.own(), &authority.issuer.pem());
        authority.issue("localhost");
        authority
    }

    /// Writes a new certificate and its key to the files, and says what it is.
    fn issue(&self, name: &str) -> String {
        let names = vec![name.to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("they are right names");
        let key = KeyPair::generate().expect("a key can be made");
        let certificate = params.signed_by(&key, &self.issuer).expect("it can be signed");
        write(&self.certificate(), &certificate.pem());
        write(&self.key(), &key.serialize_pem());
        certificate.pem()
    }

    fn own(&self) -> PathBuf {
        self.directory.path().join("authority.pem")
    }

    fn certificate(&self) -> PathBuf {
        self.directory.path().join("certificate.pem")
    }

    fn key(&self) -> PathBuf {
        self.directory.path().join("key.pem")
    }

    fn start(&self, data: &Path, others: &[(&str, &str)]) -> Server {
        let (certificate, key) = (self.certificate(), self.key());
        let mut variables =
            vec![("SANDBOXD_TLS_CERT", text(&certificate)), ("SANDBOXD_TLS_KEY", text(&key))];
        variables.extend(others);
        Server::start_with(data, &variables)
    }

    /// What curl gets from the server when it trusts this authority alone.
    fn curl(&self, server: &Server, arguments: &[&str], path: &str) -> Output {
        Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "60", "--cacert", text(&self.own())])
            .args(arguments)
            .arg(format!("https://{}{path}", server.address))
            .output()
            .expect("there is a curl")
    }
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("the file can be written");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are text")
}

fn data() -> TempDir {
    tempfile::tempdir().expect("there is room for temporary files")
}

#[test]
fn https_is_spoken_in_every_version_that_is_safe() {
    let (authority, data) = (Authority::new("ours"), data());
    let server = authority.start(data.path(), &[]);
    for (arguments, expected) in [
        (&["--http2", "--tlsv1.3"][..], "2"),
        (&["--http1.1", "--tlsv1.3"], "1.1"),
        (&["--http1.1", "--tls-max", "1.2"], "1.1"),
        (&["--http2", "--tls-max", "1.2"], "2"),
    ] {
        let all = [arguments, &["--write-out", "\n%{http_version} %{http_code}"]].concat();
        let answer = authority.curl(&server, &all, "/api/v1/health");
        let said = String::from_utf8_lossy(&answer.stdout);
        assert!(said.ends_with(&format!("\n{expected} 200")), "{arguments:?}: {answer:?}");
    }
    let old = ["--tls-max", "1.1", "--tlsv1.0", "--ciphers", "DEFAULT@SECLEVEL=0"];
    assert!(!authority.curl(&server, &old, "/api/v1/health").status.success());
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("listening on https://127.0.0.1:"), "{log}");
}

#[test]
fn a_server_of_another_authority_is_not_believed() {
    const PEER_FAILED_VERIFICATION: i32 = 60;
    let (authority, other, data) = (Authority::new("ours"), Authority::new("another"), data());
    let server = authority.start(data.path(), &[]);
    let refused = other.curl(&server, &[], "/api/v1/health");
    assert_eq!(refused.status.code(), Some(PEER_FAILED_VERIFICATION), "{refused:?}");
    assert!(authority.curl(&server, &[], "/api/v1/health").status.success());
}

#[test]
fn the_command_line_speaks_https_to_whom_it_trusts() {
    let program = Path::new(env!("CARGO_BIN_EXE_sandboxd")).with_file_name("sandbox-run");
    if !program.exists() {
        return skip(
            "sandbox-run over https",
            "sandbox-run was not built: cargo build -p sandbox-cli",
        );
    }
    let (authority, other, data) = (Authority::new("ours"), Authority::new("another"), data());
    let server = authority.start(data.path(), &[]);
    let run = |trusted: &Path, url: &str| {
        Command::new(&program)
            .args(["--server", url, "-l", "python", "-q", "-c", "print(6 * 7)"])
            .env("SSL_CERT_FILE", trusted)
            .env_remove("SSL_CERT_DIR")
            .output()
            .expect("sandbox-run can be started")
    };
    let url = format!("https://{}", server.address);
    let answer = run(&authority.own(), &url);
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "42\n", "{answer:?}");
    assert_eq!(answer.status.code(), Some(0), "{answer:?}");

    let empty = data.path().join("empty.pem");
    write(&empty, "");
    let other_data = self::data();
    let plain = Server::start(other_data.path());
    for (trusted, url, expected) in [
        (other.own(), url.clone(), "this machine does not trust its certificate"),
        (empty, url.clone(), "this machine has no trusted certificates for https"),
        (authority.own(), format!("https://{}", plain.address), "it does not use TLS"),
        (authority.own(), url.replace("127.0.0.1", "127.0.0.2"), "connection to https://127.0.0.2"),
    ] {
        let refused = run(&trusted, &url);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(125), "{refused:?}");
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    authority.issue("elsewhere.example");
    let named = url.replace("127.0.0.1", "localhost");
    server.signal(Signal::HUP);
    let refused = wait_for(SOON, || {
        let answer = run(&authority.own(), &named);
        (answer.status.code() != Some(0)).then_some(answer)
    });
    let refused = refused.expect("the new certificate is for another name");
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("its certificate is for another host name"), "{said}");
}

#[test]
fn plain_http_and_silence_on_the_port_of_tls_do_no_harm() {
    let (authority, data) = (Authority::new("ours"), data());
    let server = authority.start(data.path(), &[("SANDBOXD_HEADER_TIMEOUT", "1s")]);
    let get = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut wires = [get, "", "\x16\x03\x01\x02"].map(|bytes| Wire::with(&server, bytes));
    assert!(authority.curl(&server, &[], "/api/v1/health").status.success());
    for wire in &mut wires {
        let said = wire.until_closed();
        assert!(!said.contains("HTTP/1.1 200"), "{said}");
    }
    assert!(authority.curl(&server, &[], "/api/v1/health").status.success());
}

#[test]
fn a_new_certificate_is_taken_at_once_and_a_broken_one_never() {
    let (authority, data) = (Authority::new("ours"), data());
    let server = authority.start(data.path(), &[]);
    let shown = || {
        let answer = authority.curl(&server, &["--write-out", "%{certs}"], "/api/v1/health");
        assert!(answer.status.success(), "{answer:?}");
        String::from_utf8_lossy(&answer.stdout).replace("\r\n", "\n")
    };
    let body = |pem: &str| pem.lines().nth(1).expect("PEM has lines").to_owned();
    let new = authority.issue("localhost");
    assert!(!shown().contains(&body(&new)), "nobody has told it yet");
    server.signal(Signal::HUP);
    let taken = wait_for(SOON, || shown().contains(&body(&new)).then_some(()));
    assert!(taken.is_some(), "{}", shown());

    let newer = authority.issue("localhost");
    write(&authority.key(), "nothing");
    server.signal(Signal::HUP);
    write(&authority.certificate(), "nothing");
    server.signal(Signal::HUP);
    assert!(shown().contains(&body(&new)) && !shown().contains(&body(&newer)));
    // Signals are counted once if they come fast; this one is the last, and its answer is waited for.
    let newest = authority.issue("localhost");
    let taken = wait_for(SOON, || {
        server.signal(Signal::HUP);
        shown().contains(&body(&newest)).then_some(())
    });
    assert!(taken.is_some(), "{}", shown());
    let (_, log) = server.stop();
    assert!(log.contains("the old certificate stays in use"), "{log}");
}

#[test]
fn a_server_without_a_certificate_survives_the_signal_to_read_it_again() {
    let data = data();
    let server = Server::start(data.path());
    server.signal(Signal::HUP);
    assert_eq!(server.get("/api/v1/health").status, 200);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn files_that_are_wrong_are_told_before_anything_is_served() {
    let (authority, other, data) = (Authority::new("ours"), Authority::new("another"), data());
    let nothing = data.path().join("nothing.pem");
    write(&nothing, "nothing\n");
    let missing = data.path().join("missing.pem");
    let (certificate, key) = (authority.certificate(), authority.key());
    let cases = [
        (Some(&certificate), None, "goes together with tls_key, which is not set"),
        (None, Some(&key), "goes together with tls_cert, which is not set"),
        (Some(&missing), Some(&key), "missing.pem: cannot be read: No such file"),
        (Some(&nothing), Some(&key), "nothing.pem: there is no certificate in it"),
        (Some(&certificate), Some(&nothing), "nothing.pem: there is no private key in it"),
        (Some(&certificate), Some(&other.key()), "is not the key of"),
    ];
    for (certificate, key, expected) in cases {
        for arguments in [&["config", "check"][..], &[]] {
            let mut command = command(data.path(), arguments);
            command.args(["--listen", "127.0.0.1:0"]);
            command.envs(certificate.map(|path| ("SANDBOXD_TLS_CERT", path)));
            command.envs(key.map(|path| ("SANDBOXD_TLS_KEY", path)));
            let refused = command.output().expect("sandboxd can be started");
            let said = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(said.starts_with("sandboxd: tls_") && said.contains(expected), "{said}");
            assert_eq!(said.lines().count(), 1, "{said}");
        }
    }
}

#[test]
fn a_server_for_other_machines_warns_that_it_speaks_in_the_clear() {
    let (authority, data) = (Authority::new("ours"), data());
    assert!(output(data.path(), &["keys", "create", "--name", "test"]).status.success());
    let warns = |files: &[(&str, PathBuf)]| {
        let mut process = command(data.path(), &["--listen", "0.0.0.0:0"])
            .envs(files.iter().map(|(name, path)| (name, path)))
            .stderr(Stdio::piped())
            .spawn()
            .expect("sandboxd can be started");
        let log = BufReader::new(process.stderr.take().expect("its log is a pipe"));
        let mut lines = log.lines().map(|line| line.expect("the log is text"));
        let mut beginning: Vec<_> =
            lines.by_ref().take_while(|line| !line.contains("listening on ")).collect();
        process.kill().expect("it runs");
        process.wait().expect("it is our child");
        beginning.retain(|line| line.contains("without TLS"));
        !beginning.is_empty()
    };
    assert!(warns(&[]));
    let (certificate, key) = (authority.certificate(), authority.key());
    assert!(!warns(&[("SANDBOXD_TLS_CERT", certificate), ("SANDBOXD_TLS_KEY", key)]));
}

/// A stream that is reset while the client still sends loses the answer.
#[test]
fn what_is_refused_over_http2_is_told_every_time() {
    let (authority, data) = (Authority::new("ours"), data());
    assert!(output(data.path(), &["keys", "create", "--name", "test"]).status.success());
    let server = authority.start(data.path(), &[("SANDBOXD_BURST", "30")]);
    let body = data.path().join("body");
    let argument = format!("@{}", text(&body));
    let arguments = ["--http2", "--header", "X-API-Key: wrong", "--data-binary", &argument];
    let arguments = [&arguments[..], &["--header", "Expect:", "--output", "/dev/null"]].concat();
    let arguments = [&arguments[..], &["--write-out", "%{http_code}"]].concat();
    for size in [100, 20_000, 1_000_000, 20_000_000] {
        fs::write(&body, vec![b'x'; size]).expect("the file can be written");
        for _ in 0..10 {
            let answer = authority.curl(&server, &arguments, "/api/v1/execute");
            assert_eq!(answer.status.code(), Some(0), "{size}: {answer:?}");
            let status = String::from_utf8_lossy(&answer.stdout);
            assert!(["401", "429"].contains(&&*status), "{size}: {answer:?}");
        }
    }
}
