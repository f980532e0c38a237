//! Packages from the real indexes: installed once, then available without a network.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use assert_cmd::Command;
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{BINARY, CommandOutput, TIMEOUT};

/// A person with a store and environments of their own.
struct Home(TempDir);

/// Nobody listens there: an index at this address is one that cannot be reached.
const NOWHERE: &str = "http://127.0.0.1:1/simple";

const PRINT_SIX: &str = "import six; print(six.__version__)";

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn call(&self, args: &[&str]) -> CommandOutput {
        self.call_with(&[], args)
    }

    fn call_with(&self, variables: &[(&str, &str)], args: &[&str]) -> CommandOutput {
        let mut command = Command::new(BINARY);
        command.env("SANDBOX_RUN_STORE", self.path("store"));
        command.env("XDG_DATA_HOME", self.path("data")).envs(variables.iter().copied());
        command.args(args).timeout(3 * TIMEOUT).output().unwrap().into()
    }

    /// A run with no word about itself but what the program prints.
    fn run(&self, args: &[&str]) -> String {
        let answer = self.call(&[args, &["--quiet"]].concat());
        assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""), "{answer:?}");
        answer.stdout
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// What the store says about each of its layers.
    fn layers(&self) -> Vec<String> {
        let json = self.call(&["cache", "--json"]).json();
        let layers = json["layers"].as_array().unwrap().iter();
        layers.map(|layer| layer["about"].as_str().unwrap().to_owned()).collect()
    }
}

#[test]
fn a_package_is_fetched_once_and_then_needs_no_index() {
    let home = Home::new();
    let args = ["--lang", "python", "--packages", "six", "--code", PRINT_SIX];
    let first = home.call(&args);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.stdout.starts_with("1."), "{first:?}");
    assert!(first.stderr.contains("pip: installing six 1."), "{first:?}");

    let again = home.call_with(&[("PIP_INDEX_URL", NOWHERE)], &args);
    assert_eq!((again.code, &again.stdout), (Some(0), &first.stdout), "{again:?}");
    assert!(!again.stderr.contains("pip:"), "{again:?}");
}

#[test]
fn a_version_that_does_not_exist_is_one_line_and_keeps_nothing() {
    let home = Home::new();
    let answer = home.call(&["--lang", "python", "--packages", "six==99", "--code", PRINT_SIX]);
    answer.is_refused_with(&["No matching distribution found for six==99"]);
    let answer = home.call(&["--lang", "js", "--packages", "left-pad@99", "--code", "1"]);
    answer.is_refused_with(&["No matching version found for left-pad@99"]);
    assert_eq!(home.layers(), [""; 0]);
    assert_eq!(std::fs::read_dir(home.path("store/temporary")).unwrap().count(), 0);
}

#[test]
fn an_index_that_does_not_answer_is_named() {
    let home = Home::new();
    let args = ["--lang", "python", "--packages", "six", "--code", PRINT_SIX];
    let answer = home.call_with(&[("PIP_INDEX_URL", NOWHERE)], &args);
    answer.is_refused_with(&["127.0.0.1:1 could not be reached"]);
}

#[test]
fn what_is_no_package_is_refused_before_anything_happens() {
    let home = Home::new();
    for (language, package) in [
        ("python", "./six"),
        ("python", "https://example.com/six.whl"),
        ("python", "six --index-url=x"),
        ("python", "six@1"),
        ("js", "file:six"),
        ("js", "lodash==4"),
    ] {
        let answer = home.call(&["-l", language, "--packages", package, "-c", "1"]);
        answer.is_refused_with(&["is not a valid package"]);
    }
    home.call(&["-l", "python", "--packages=-rx", "-c", "1"])
        .is_refused_with(&["is not a valid package"]);
    home.call(&["-l", "bash", "--packages", "six", "-c", "1"])
        .is_refused_with(&["packages are not supported for bash"]);
    home.call(&["-l", "py", "--packages", "six", "--environment", "x", "-c", "1"])
        .is_refused_with(&["--environment"]);
    assert_eq!(home.layers(), [""; 0]);
}

#[test]
fn environments_that_come_to_the_same_packages_share_them() {
    let home = Home::new();
    for (name, packages) in [("one", "six"), ("two", "six>=1,<99")] {
        let args = ["env", "build", name, "--lang", "python", "--packages", packages];
        let answer = home.call(&args);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        assert!(answer.stdout.starts_with(&format!("{name}: python ")), "{answer:?}");
    }
    assert_eq!(home.layers().len(), 1);
    let listed = home.call(&["env", "list", "--json"]).json();
    let locked = |at: usize| listed[at]["lock"]["packages"].clone();
    assert_eq!(locked(0), locked(1));
    assert_eq!(locked(0)[0]["name"], "six");
    assert!(locked(0)[0]["hash"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(home.call(&["env", "show", "two"]).json(), listed[1]);

    let run = |name: &str| home.run(&["--environment", name, "-l", "python", "-c", PRINT_SIX]);
    assert_eq!(run("one"), run("two"));

    assert_eq!(home.call(&["env", "remove", "one"]).code, Some(0));
    for args in [&["env", "remove", "one"][..], &["env", "show", "one"]] {
        home.call(args).is_refused_with(&["there is no environment 'one'"]);
    }
    assert_eq!(run("two").trim(), locked(1)[0]["version"].as_str().unwrap());
}

#[test]
fn what_the_store_lost_is_fetched_exactly_as_it_was() {
    let home = Home::new();
    let args = ["env", "build", "old", "--lang", "python", "--packages", "six==1.16.0", "--quiet"];
    let built = home.call(&args);
    assert_eq!((built.code, built.stdout + &built.stderr), (Some(0), String::new()));
    assert_eq!(home.call(&["cache", "clear"]).code, Some(0));
    let run = ["--environment", "old", "-l", "python", "-c", PRINT_SIX];
    home.call_with(&[("PIP_INDEX_URL", NOWHERE)], &run)
        .is_refused_with(&["no longer has the locked files", "could not be reached"]);
    assert_eq!(home.run(&run), "1.16.0\n");

    // The hash in a lock is what counts, whatever the index has under that version.
    assert_eq!(home.call(&["cache", "clear"]).code, Some(0));
    let file = home.path("data/sandbox-run/environments/old.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let lock: Value = serde_json::from_str(&text).unwrap();
    let hash = lock["lock"]["packages"][0]["hash"].as_str().unwrap();
    let other = format!("sha256:{}", "0".repeat(64));
    std::fs::write(&file, text.replace(hash, &other)).unwrap();
    let answer = home.call(&[&run[..], &["--quiet"]].concat());
    answer.is_refused_with(&["no longer has the locked files", "HASHES"]);
    assert_eq!(home.layers(), [""; 0]);
}

#[test]
fn every_manager_fetches_by_its_lock() {
    let home = Home::new();
    let pad = "console.log(require('left-pad')('7', 3, '0'))";
    let itoa = "fn main() { println!(\"{}\", itoa::Buffer::new().format(7_u8)); }";
    for (language, package, code, printed) in
        [("js", "left-pad@1.3", pad, "007\n"), ("rust", "itoa@1", itoa, "7\n")]
    {
        let args = ["env", "build", "it", "-q", "--lang", language, "--packages", package];
        assert_eq!(home.call(&args).code, Some(0));
        assert_eq!(home.call(&["cache", "clear"]).code, Some(0));
        assert_eq!(home.run(&["--environment", "it", "-l", language, "-c", code]), printed);
    }
}

#[test]
fn packages_are_read_only_and_the_program_still_has_no_network() {
    let home = Home::new();
    let code = "
import socket, six
for path in (six.__file__, '/opt/packages/new'):
    try: open(path, 'a')
    except OSError: print('refused')
    else: print('written')
try: socket.create_connection(('127.0.0.1', 3128), timeout=5)
except OSError: print('no way out')
";
    let printed = home.run(&["-l", "python", "--packages", "six", "-c", code]);
    assert_eq!(printed, "refused\nrefused\nno way out\n");
}

#[test]
fn a_large_package_works_under_the_limits_everyone_has() {
    let home = Home::new();
    let code = "
import numpy
print(numpy.linalg.det(numpy.array([[2.0, 1.0], [1.0, 3.0]])).round(6), numpy.arange(10**6).sum())
";
    let printed = home.run(&["-l", "python", "--packages", "numpy==2.*", "-c", code]);
    assert_eq!(printed, "5.0 499999500000\n");
}

#[test]
fn packages_for_node_are_found_by_require_and_by_import() {
    let home = Home::new();
    let required = "console.log(require('left-pad')('7', 3, '0'))";
    let imported = "import pad from 'left-pad'; console.log(pad('7', 3, '0'))";
    let args = |code| ["-l", "js", "--packages", "left-pad@1.3", "-c", code];
    assert_eq!(home.run(&args(required)), "007\n");
    // The second one needs no registry.
    let nowhere = [("npm_config_registry", NOWHERE)];
    let answer = home.call_with(&nowhere, &args(imported));
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "007\n"), "{answer:?}");
}

#[test]
fn a_single_rust_file_uses_crates() {
    let home = Home::new();
    let code = "fn main() { println!(\"{}\", itoa::Buffer::new().format(42_u8)); }";
    let run = ["-l", "rust", "--packages", "itoa@1", "-c", code];
    assert_eq!(home.run(&run), "42\n");
    home.call(&["-l", "rust", "--packages", "itoa@99", "-c", code])
        .is_refused_with(&["failed to select a version", "itoa"]);
    let crates = home.layers();
    assert!(crates.iter().any(|about| about.starts_with("rust packages: itoa 1.")), "{crates:?}");
}

#[test]
fn a_build_reaches_its_index_and_no_other_place() {
    let elsewhere = TcpListener::bind("127.0.0.1:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let elsewhere_at = elsewhere.local_addr().unwrap();
    let page = format!("<a href=\"http://{elsewhere_at}/toy-1.0-py3-none-any.whl\">toy</a>");
    let index = serve(page);

    let home = Home::new();
    let args = ["-l", "python", "--packages", "toy", "-c", "1"];
    let variables = [("PIP_INDEX_URL", index.as_str())];
    let answer = home.call_with(&variables, &[&["--quiet"], &args[..]].concat());
    let refusal = format!("{elsewhere_at} is not an allowed destination of this sandbox");
    answer.is_refused_with(&[&refusal]);
    let knocked = elsewhere.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(knocked, Err(std::io::ErrorKind::WouldBlock));
    assert!(!Path::new(&home.path("store/layers")).read_dir().unwrap().any(|_| true));
}

/// A source package that needs nothing to be built but the Python it is built with. `extra` is what its
/// author does besides, while it is built.
fn source_package(directory: &Path, name: &str, extra: &str) {
    let backend = format!(
        "
import os, zipfile
def build_wheel(directory, settings=None, metadata=None):
    wheel = '{name}-1.0-py3-none-any.whl'
    with zipfile.ZipFile(os.path.join(directory, wheel), 'w') as archive:
        archive.writestr('{name}.py', 'WHO = \"honest\"\\n')
        info = '{name}-1.0.dist-info/'
        archive.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n')
        archive.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
        archive.writestr(info + 'RECORD', '')
{extra}
    return wheel
"
    );
    let root = directory.join(format!("{name}-1.0"));
    std::fs::create_dir(&root).unwrap();
    std::fs::write(root.join("backend.py"), backend).unwrap();
    let project =
        "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n";
    std::fs::write(root.join("pyproject.toml"), project).unwrap();
    let info = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n");
    std::fs::write(root.join("PKG-INFO"), info).unwrap();
    let archive = directory.join(format!("{name}-1.0.tar.gz"));
    let mut tar = std::process::Command::new("tar");
    tar.arg("-czf").arg(archive).arg("-C").arg(directory).arg(format!("{name}-1.0"));
    assert!(tar.status().unwrap().success());
}

#[test]
fn the_code_of_a_package_cannot_change_what_others_get() {
    let home = Home::new();
    let shelf = tempfile::tempdir().unwrap();
    source_package(shelf.path(), "victim", "");
    // Built after the other one, it puts something else in its place and takes its own trace away.
    let extra = "
    other = '/work/built/victim-1.0-py3-none-any.whl'
    if os.path.exists(other):
        with zipfile.ZipFile(other, 'a') as archive:
            archive.writestr('victim.py', 'WHO = \"poisoned\"\\n')
        os.remove('/work/fetched/zealot-1.0.tar.gz')
";
    source_package(shelf.path(), "zealot", extra);
    let links = shelf.path().to_str().unwrap();
    let variables = [("PIP_FIND_LINKS", links), ("PIP_NO_INDEX", "1")];
    let who = |packages: &str| {
        let code = "import victim; print(victim.WHO)";
        let args = ["-q", "-l", "python", "--packages", packages, "-c", code];
        let answer = home.call_with(&variables, &args);
        assert_eq!(answer.code, Some(0), "{answer:?}");
        answer.stdout
    };
    // Who asks for hostile code gets it; the attack works as far as that.
    assert_eq!(who("victim,zealot"), "poisoned\n");
    assert_eq!(who("victim"), "honest\n");
}

#[test]
fn code_that_is_run_while_a_package_is_built_reaches_nothing_but_the_index() {
    let home = Home::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let shelf = tempfile::tempdir().unwrap();
    let extra = format!(
        "
    import socket
    proxy = socket.create_connection(('127.0.0.1', 3128), timeout=10)
    proxy.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\n')
    answer = proxy.recv(100)
    assert b' 403 ' in answer, answer
    for address in ('127.0.0.1', '10.0.0.1', '192.0.2.1'):
        try: socket.create_connection((address, {port}), timeout=10)
        except OSError: continue
        raise SystemExit('reached ' + address)
"
    );
    source_package(shelf.path(), "curious", &extra);
    let variables = [("PIP_FIND_LINKS", shelf.path().to_str().unwrap()), ("PIP_NO_INDEX", "1")];
    let code = "import curious; print(curious.WHO)";
    let args = ["-q", "-l", "python", "--packages", "curious", "-c", code];
    let answer = home.call_with(&variables, &args);
    assert_eq!((answer.code, answer.stdout.as_str()), (Some(0), "honest\n"), "{answer:?}");
    let knocked = listener.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(knocked, Err(std::io::ErrorKind::WouldBlock));
}

/// An index with one page, until the test ends.
fn serve(page: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut peer in listener.incoming().flatten() {
            let mut heard = Vec::new();
            let mut byte = [0];
            while !heard.ends_with(b"\r\n\r\n") && peer.read_exact(&mut byte).is_ok() {
                heard.push(byte[0]);
            }
            // Whoever left in the meantime misses nothing.
            let _ = write!(
                peer,
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/html\r\n\
                 Content-Length: {}\r\n\r\n{page}",
                page.len()
            );
        }
    });
    format!("http://{address}/simple")
}
