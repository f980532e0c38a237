//! A private network for a test: public-looking and private addresses, names for them, nothing of the real network.

use std::io::Write;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Its addresses and their names. The first is that of a web site, the last are unassigned outside.
pub const SITE: &str = "93.184.216.34";
/// Of another site.
pub const OTHER: &str = "93.184.216.35";
/// The first site's, of version six.
pub const SITE_V6: &str = "2606:2800:220:1::34";
/// A private one.
pub const PRIVATE: &str = "10.77.0.1";
/// Where clouds keep their secrets.
pub const METADATA: &str = "169.254.169.254";

const NAMES: &[(&str, &str)] = &[
    (SITE, "site.example www.site.example"),
    (OTHER, "other.example"),
    (SITE_V6, "six.example both.example"),
    (SITE, "both.example"),
    (PRIVATE, "rebind.example mixed.example"),
    (METADATA, "metadata.example"),
    (SITE, "mixed.example"),
    ("127.0.0.1", "localhost"),
];

/// Says to the second process that it is the second.
const INSIDE: &str = "SANDBOX_TEST_WORLD";

/// Runs a test in such a network. This same test is started once more there, as root of that network or as an ordinary user;
/// `name` is its full name in its program.
pub fn in_a_world(name: &str, who: Who, test: impl FnOnce()) {
    if is_inside() {
        return test();
    }
    let place = prepare();
    let own = [SITE, OTHER, PRIVATE, METADATA]
        .map(|address| format!("ip addr add {address}/32 dev lo; "));
    let six = format!("ip addr add {SITE_V6}/128 dev lo nodad; ");
    let mut setup = format!("set -e; ip link set lo up; {}{six}", own.concat());
    setup += "mount --bind \"$1/hosts\" /etc/hosts; mount --bind \"$1/nobody\" /etc/resolv.conf; ";
    setup += match who {
        Who::Root => "shift; exec \"$@\"",
        Who::Nobody => "shift; exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \"$@\"",
    };
    let child = Command::new("unshare")
        .args(["--net", "--mount", "--propagation", "private", "sh", "-c", &setup, "world"])
        .arg(place.path())
        .arg(place.path().join("test-program"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(INSIDE, "1")
        .env_remove("LLVM_PROFILE_FILE")
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .expect("unshare can be started");
    let said = [child.stdout, child.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    assert!(child.status.success(), "in a network of its own:\n{}", said.concat());
    // A misspelt name would select no test and succeed.
    assert!(said[0].contains("1 passed"), "no test is called {name}:\n{}", said.concat());
}

/// As whom a test runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// Root of the host.
    Root,
    /// A user that owns nothing.
    Nobody,
}

#[expect(clippy::disallowed_methods, reason = "one process of a test tells the other this way")]
fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Files that the second process needs, for everybody to read.
fn prepare() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let place = tempfile::tempdir().expect("there is room");
    let readable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), readable).expect("it is ours");
    let mut hosts = std::fs::File::create(place.path().join("hosts")).expect("there is room");
    for (address, names) in NAMES {
        writeln!(hosts, "{address} {names}").expect("there is room");
    }
    std::fs::write(place.path().join("nobody"), "").expect("there is room");
    let program = std::env::current_exe().expect("this program has a path");
    std::fs::copy(program, place.path().join("test-program")).expect("a program can copy itself");
    place
}
