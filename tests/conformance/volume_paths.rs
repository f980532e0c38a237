//! Which host paths can be volumes, and what a link on one leads to: as root and as an ordinary user.

use std::cell::RefCell;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sandbox::{
    ExecuteError, ExecutionId, Hooks, Refusal, Sandbox, SandboxBuilder, StagePlan, Status, Volume,
    VolumeAccess, Workspaces,
};
use sandbox_tests::backend::{Feature, lacks, show, with_each_backend_set_up};
use sandbox_tests::user::as_ordinary_user;
use tempfile::TempDir;

use crate::table::bash;

/// What no program must ever read.
const SECRET: &str = "the secret of the host";

/// `open/note`, and `closed/note` that holds a secret, in a directory that can be written by this user alone.
struct Place {
    _directory: TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        for (name, text) in [("open", "shown"), ("closed", SECRET)] {
            std::fs::create_dir(path.join(name)).unwrap();
            std::fs::write(path.join(name).join("note"), text).unwrap();
        }
        Self { _directory: directory, path }
    }

    fn link(&self, target: impl AsRef<Path>, name: &str) -> PathBuf {
        let link = self.path.join(name);
        symlink(target, &link).unwrap();
        link
    }
}

/// Runs a test with each backend, set up for a place, and once more as an ordinary user. `name` is the test's.
fn as_both(
    name: &str,
    set_up: impl Fn(&Place, SandboxBuilder) -> SandboxBuilder,
    test: impl Fn(&Place, &Sandbox),
) {
    let test = || {
        let place = RefCell::new(Place::new());
        let set_up = |builder| {
            // Each finds it as it was.
            place.replace(Place::new());
            set_up(&place.borrow(), builder)
        };
        let test = |sandbox: &Sandbox| test(&place.borrow(), sandbox);
        with_each_backend_set_up(&[Feature::Volumes], set_up, test);
    };
    if rustix::process::geteuid().is_root() {
        test();
    }
    as_ordinary_user(&format!("volume_paths::{name}"), test);
}

fn usual(_: &Place, builder: SandboxBuilder) -> SandboxBuilder {
    builder
}

/// What `cat /data/note` says, or why the volume is refused.
fn read(sandbox: &Sandbox, host: &Path) -> Result<String, ExecuteError> {
    let volume = Volume::new(host, Path::new("/data"), VolumeAccess::ReadWrite).unwrap();
    let request = bash("cat /data/note").volume(volume).build().unwrap();
    let report = sandbox.execute(request)?;
    show(&report);
    Ok(report.stdout)
}

/// A volume that is refused, with these words in one line.
fn refused(sandbox: &Sandbox, host: &Path, words: &str) {
    match read(sandbox, host) {
        Err(ExecuteError::Volume(error)) => {
            let line = error.to_string();
            assert!(line.contains(words), "{}: {line}", host.display());
            assert_eq!(line.lines().count(), 1, "{line}");
        }
        other => panic!("{}: {other:?}", host.display()),
    }
}

#[test]
fn a_link_gets_around_no_refusal() {
    as_both("a_link_gets_around_no_refusal", usual, |place, sandbox| {
        let targets = ["/", "/proc", "/proc/self/root", "/proc/1", "/sys", "/dev", "/dev/shm"];
        for (number, target) in targets.iter().enumerate() {
            let link = place.link(target, &format!("link{number}"));
            let words = "never shared";
            if target.starts_with("/proc/") && link.canonicalize().is_err() {
                // Another user's.
                refused(sandbox, &link, "cannot access the host path");
            } else {
                refused(sandbox, &link, words);
            }
            std::fs::remove_file(link).unwrap();
        }
        let root = place.link("/", "root");
        for below in ["proc", "sys/kernel", "dev", "proc/self/root"] {
            refused(sandbox, &root.join(below), "never shared");
        }
        std::fs::remove_file(root).unwrap();
        // What a link leads to can be shared if it could be without the link.
        let link = place.link("open", "link");
        assert_eq!(read(sandbox, &link).unwrap(), "shown");
        std::fs::remove_file(link).unwrap();
    });
}

#[test]
fn a_link_in_a_volume_leads_nowhere_on_the_host() {
    as_both("a_link_in_a_volume_leads_nowhere_on_the_host", usual, |place, sandbox| {
        let (open, secret) = (place.path.join("open"), place.path.join("closed/note"));
        for (name, target) in [("link1", secret.as_path()), ("link2", "../closed/note".as_ref())] {
            let link = place.link(target, &format!("open/{name}"));
            assert_eq!(std::fs::read_to_string(link).unwrap(), SECRET, "outside it leads there");
        }
        let volume = Volume::new(&open, Path::new("/data"), VolumeAccess::ReadOnly).unwrap();
        let request = bash("cat /data/link1 /data/link2; cat /data/note").volume(volume);
        let report = sandbox.execute(request.build().unwrap()).unwrap();
        show(&report);
        assert_eq!(report.stdout, "shown");
        for name in ["open/link1", "open/link2"] {
            std::fs::remove_file(place.path.join(name)).unwrap();
        }
    });
}

#[test]
fn sockets_pipes_and_devices_are_no_volumes() {
    as_both("sockets_pipes_and_devices_are_no_volumes", usual, |place, sandbox| {
        let (socket, pipe) = (place.path.join("socket"), place.path.join("pipe"));
        let _listener = UnixListener::bind(&socket).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
        let link = place.link("socket", "link");
        refused(sandbox, &socket, "it is a socket");
        refused(sandbox, &link, "it is a socket");
        refused(sandbox, &pipe, "it is a pipe");
        for made in [socket, pipe, link] {
            std::fs::remove_file(made).unwrap();
        }
        refused(sandbox, &place.path.join("nothing"), "No such file");
    });
}

#[test]
fn only_allowed_places_can_be_volumes() {
    let set_up = |place: &Place, builder: SandboxBuilder| {
        builder.volumes_from([place.path.join("open"), place.path.join("nothing")])
    };
    as_both("only_allowed_places_can_be_volumes", set_up, |place, sandbox| {
        let (open, closed) = (place.path.join("open"), place.path.join("closed"));
        assert_eq!(read(sandbox, &open).unwrap(), "shown");
        let out = place.link("../closed", "open/out");
        let into = place.link("open", "into");
        assert_eq!(read(sandbox, &into).unwrap(), "shown");
        for host in [&closed, &place.path, &out, &into.join("out"), &place.path.join("absent")] {
            refused(sandbox, host, "is not in a directory that is allowed for volumes");
        }
        for link in [out, into] {
            std::fs::remove_file(link).unwrap();
        }
    });
}

#[test]
fn an_empty_list_allows_no_volume() {
    let none = |_: &Place, builder: SandboxBuilder| builder.volumes_from([]);
    as_both("an_empty_list_allows_no_volume", none, |place, sandbox| {
        for name in ["open", "nothing"] {
            refused(sandbox, &place.path.join(name), "no volumes are allowed here");
        }
        let report = sandbox.execute(bash("echo ran").build().unwrap()).unwrap();
        assert_eq!(report.stdout, "ran\n");
    });
}

/// Puts a link in the place of a directory after the request was taken, and before its volumes are mounted.
struct Swap {
    directory: PathBuf,
    target: Mutex<Option<PathBuf>>,
}

impl Hooks for Swap {
    fn before_stage(&self, _: ExecutionId, plan: &StagePlan) -> Result<(), Refusal> {
        assert!(!plan.sandbox.volumes.is_empty(), "the stage has the volume");
        if let Some(target) = self.target.lock().unwrap().take() {
            std::fs::rename(&self.directory, self.directory.with_extension("old")).unwrap();
            symlink(target, &self.directory).unwrap();
        }
        Ok(())
    }
}

/// A volume on whose path a directory becomes a link between the check and the mount.
fn swapped(test: &str, host: &str, words: &str) {
    let set_up = |place: &Place, builder: SandboxBuilder| {
        for name in ["open", "closed"] {
            std::fs::create_dir(place.path.join(name).join("sub")).unwrap();
            std::fs::write(place.path.join(name).join("sub/note"), SECRET).unwrap();
        }
        let target = Mutex::new(Some(place.path.join("closed")));
        let swap = Swap { directory: place.path.join("open"), target };
        builder.volumes_from([place.path.join("open")]).hooks(swap)
    };
    as_both(test, set_up, |place, sandbox| {
        match read(sandbox, &place.path.join(host)) {
            Err(ExecuteError::Unsupported(reason)) => assert!(reason.contains(words), "{reason}"),
            other => panic!("{other:?}"),
        }
        // The next one is looked at anew.
        refused(sandbox, &place.path.join(host), "is not in a directory that is allowed");
    });
}

#[test]
fn a_volume_that_becomes_a_link_after_the_check_is_not_mounted() {
    let name = "a_volume_that_becomes_a_link_after_the_check_is_not_mounted";
    swapped(name, "open", "Not a directory");
}

#[test]
fn a_link_that_comes_into_a_volumes_path_after_the_check_is_not_followed() {
    let name = "a_link_that_comes_into_a_volumes_path_after_the_check_is_not_followed";
    swapped(name, "open/sub", "symbolic link");
}

#[test]
fn a_link_in_a_workspace_moves_no_volume() {
    let set_up = |place: &Place, builder: SandboxBuilder| {
        builder.workspaces(Workspaces::in_directory(&place.path.join("workspaces")))
    };
    as_both("a_link_in_a_workspace_moves_no_volume", set_up, |place, sandbox| {
        if lacks(sandbox.isolation(), Feature::Workspaces) {
            return;
        }
        let leave = bash("mkdir /tmp/x; ln -s /usr data; ln -s /tmp deep").workspace("w");
        let report = sandbox.execute(leave.build().unwrap()).unwrap();
        assert_eq!(report.status, Status::Completed, "{}", report.stderr);
        for inside in ["/work/data", "/work/deep/x"] {
            let open = place.path.join("open");
            let volume = Volume::new(&open, Path::new(inside), VolumeAccess::ReadWrite).unwrap();
            let request = bash("echo ran").workspace("w:ro").volume(volume).build().unwrap();
            let report = sandbox.execute(request).unwrap();
            show(&report);
            assert_eq!((report.status, report.stdout.as_str()), (Status::Error, ""), "{inside}");
            let error = report.error.unwrap();
            assert!(error.contains("attach the volume"), "{error}");
        }
    });
}
