//! TLS, with curl and `sandbox-run` as clients.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rcgen::{CertificateParams, CertifiedIssuer, DnType, KeyPair};
use rustix::process::Signal;
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;
use tempfile::TempDir;

use crate::raw_connection::RawConnection;
use crate::server_process::{Server, WAIT_TIMEOUT, command, output};

/// A certificate authority, and the files of a server.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).expect("the names are valid");
        // Authorities with the same name are considered equal.
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it can be signed");
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        let authority = Self { issuer, directory };
        write(&authority.own(), &authority.issuer.pem());
        authority.issue("localhost");
        authority
    }

    /// Issues a new certificate, writes it and its key to the files, and returns it.
    fn issue(&self, name: &str) -> String {
        let names = vec![name.to_owned(), "127.0.0.1".to_owned()];
        let params = CertificateParams::new(names).expect("the names are valid");
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

    /// Runs curl, which trusts only this authority.
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
    tempfile::tempdir().expect("a temporary directory can be created")
}

#[test]
fn tls_1_2_and_1_3_are_supported() {
    let (authority, data) = (Authority::new("ours"), data());
    let server = authority.start(data.path(), &[]);
    for (arguments, expected) in [
        (&["--http2", "--tlsv1.3"][..], "2"),
        (&["--http1.1", "--tlsv1.3"], "1.1"),
        (&["--http1.1", "--tls-max", "1.2"], "1.1"),
        (&["--http2", "--tls-max", "1.2"], "2"),
    ] {
        let all = [arguments, &["--write-out", "\n%{http_version} %{http_code}"]].concat();
        let output = authority.curl(&server, &all, "/api/v1/health");
        let response = String::from_utf8_lossy(&output.stdout);
        assert!(response.ends_with(&format!("\n{expected} 200")), "{arguments:?}: {output:?}");
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
fn sandbox_run_verifies_the_certificate() {
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
    let output = run(&authority.own(), &url);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "42\n", "{output:?}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");

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
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(125), "{refused:?}");
        assert!(stderr.contains(expected), "{stderr}");
        assert_eq!(stderr.trim_end().lines().count(), 1, "{stderr}");
    }
    authority.issue("elsewhere.example");
    let named = url.replace("127.0.0.1", "localhost");
    server.signal(Signal::HUP);
    let refused = wait_for(WAIT_TIMEOUT, || {
        let output = run(&authority.own(), &named);
        (output.status.code() != Some(0)).then_some(output)
    });
    let refused = refused.expect("the new certificate is for another name");
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(stderr.contains("its certificate is for another host name"), "{stderr}");
}

#[test]
fn plain_http_and_idle_connections_on_the_tls_port_are_closed() {
    let (authority, data) = (Authority::new("ours"), data());
    let server = authority.start(data.path(), &[("SANDBOXD_HEADER_TIMEOUT", "1s")]);
    let get = "GET /api/v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let mut connections =
        [get, "", "\x16\x03\x01\x02"].map(|bytes| RawConnection::with(&server, bytes));
    assert!(authority.curl(&server, &[], "/api/v1/health").status.success());
    for connection in &mut connections {
        let response = connection.until_closed();
        assert!(!response.contains("HTTP/1.1 200"), "{response}");
    }
    assert!(authority.curl(&server, &[], "/api/v1/health").status.success());
}

#[test]
fn sighup_reloads_a_certificate_if_it_is_valid() {
    let (authority, data) = (Authority::new("ours"), data());
    let server = authority.start(data.path(), &[]);
    let shown = || {
        let output = authority.curl(&server, &["--write-out", "%{certs}"], "/api/v1/health");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n")
    };
    let body = |pem: &str| pem.lines().nth(1).expect("PEM has lines").to_owned();
    let new = authority.issue("localhost");
    assert!(!shown().contains(&body(&new)), "not reloaded yet");
    server.signal(Signal::HUP);
    let taken = wait_for(WAIT_TIMEOUT, || shown().contains(&body(&new)).then_some(()));
    assert!(taken.is_some(), "{}", shown());

    let newer = authority.issue("localhost");
    write(&authority.key(), "nothing");
    server.signal(Signal::HUP);
    write(&authority.certificate(), "nothing");
    server.signal(Signal::HUP);
    assert!(shown().contains(&body(&new)) && !shown().contains(&body(&newer)));
    // Signals in quick succession are merged, so repeat this one.
    let newest = authority.issue("localhost");
    let taken = wait_for(WAIT_TIMEOUT, || {
        server.signal(Signal::HUP);
        shown().contains(&body(&newest)).then_some(())
    });
    assert!(taken.is_some(), "{}", shown());
    let (_, log) = server.stop();
    assert!(log.contains("the old certificate stays in use"), "{log}");
}

#[test]
fn sighup_does_not_end_a_server_without_a_certificate() {
    let data = data();
    let server = Server::start(data.path());
    server.signal(Signal::HUP);
    assert_eq!(server.get("/api/v1/health").status, 200);
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn invalid_files_are_reported_at_the_start() {
    let (authority, other, data) = (Authority::new("ours"), Authority::new("another"), data());
    let nothing = data.path().join("nothing.pem");
    write(&nothing, "nothing\n");
    let missing = data.path().join("missing.pem");
    let (certificate, key) = (authority.certificate(), authority.key());
    let cases = [
        (Some(&certificate), None, "requires tls_key, which is not set"),
        (None, Some(&key), "requires tls_cert, which is not set"),
        (Some(&missing), Some(&key), "missing.pem: cannot read it: No such file"),
        (Some(&nothing), Some(&key), "nothing.pem: contains no PEM certificate"),
        (Some(&certificate), Some(&nothing), "nothing.pem: contains no PEM private key"),
        (Some(&certificate), Some(&other.key()), "does not match the certificate"),
    ];
    for (certificate, key, expected) in cases {
        for arguments in [&["config", "check"][..], &[]] {
            let mut command = command(data.path(), arguments);
            command.args(["--listen", "127.0.0.1:0"]);
            command.envs(certificate.map(|path| ("SANDBOXD_TLS_CERT", path)));
            command.envs(key.map(|path| ("SANDBOXD_TLS_KEY", path)));
            let refused = command.output().expect("sandboxd can be started");
            let stderr = String::from_utf8_lossy(&refused.stderr);
            assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {stderr}");
            assert!(stderr.starts_with("sandboxd: tls_") && stderr.contains(expected), "{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
        }
    }
}

#[test]
fn listening_without_tls_for_other_machines_is_a_warning() {
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
        process.wait().expect("the server is a child process");
        beginning.retain(|line| line.contains("without TLS"));
        !beginning.is_empty()
    };
    assert!(warns(&[]));
    let (certificate, key) = (authority.certificate(), authority.key());
    assert!(!warns(&[("SANDBOXD_TLS_CERT", certificate), ("SANDBOXD_TLS_KEY", key)]));
}

/// Resetting a stream while the client still sends would discard the response.
#[test]
fn errors_over_http2_reach_a_client_that_sends_a_large_body() {
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
            let output = authority.curl(&server, &arguments, "/api/v1/execute");
            assert_eq!(output.status.code(), Some(0), "{size}: {output:?}");
            let status = String::from_utf8_lossy(&output.stdout);
            assert!(["401", "429"].contains(&&*status), "{size}: {output:?}");
        }
    }
}
