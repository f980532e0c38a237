//! Directories of the host that the caller shows to a program, as root and as an ordinary user.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode};
use sandbox::{Report, RequestBuilder, Sandbox, Volume, VolumeAccess};
use sandbox_tests::backend::{Feature, execute, with_each_backend_that_has};
use sandbox_tests::skip::skip;
use sandbox_tests::user::as_ordinary_user;
use tempfile::TempDir;

use crate::table::bash;

/// A directory with a file and a directory in it.
fn shown() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("note"), "from outside").unwrap();
    std::fs::create_dir(place.path().join("sub")).unwrap();
    place
}

fn volume(host: &Path, inside: &str, access: VolumeAccess) -> Volume {
    Volume::new(host, Path::new(inside), access).unwrap()
}

/// Runs a test with each backend, and once more as an ordinary user. `name` is the test's.
fn as_both(name: &str, test: impl Fn(&Sandbox)) {
    let test = || with_each_backend_that_has(&[Feature::Volumes], &test);
    if rustix::process::geteuid().is_root() {
        test();
    }
    as_ordinary_user(&format!("volumes::{name}"), test);
}

/// Runs a script with a fresh directory shown at this place, by root and by an ordinary user.
fn with_volume(
    name: &str,
    script: &str,
    inside: &str,
    access: VolumeAccess,
    check: impl Fn(&Report, &Path),
) {
    as_both(name, |sandbox| {
        let place = shown();
        let request: RequestBuilder = bash(script).volume(volume(place.path(), inside, access));
        if let Some(report) = execute(name, sandbox, request) {
            check(&report, place.path());
        }
    });
}

#[test]
fn a_volume_can_be_read_and_not_written_unless_said() {
    let script = "cat /data/note; echo x > /data/new || echo refused; rm /data/note || echo kept; \
                  chmod 777 /data/note || echo unchanged; exec 2>&-; touch /data/sub/new || echo no";
    with_volume(
        "a_volume_can_be_read_and_not_written_unless_said",
        script,
        "/data",
        VolumeAccess::ReadOnly,
        |report, place| {
            assert_eq!(report.stdout, "from outsiderefused\nkept\nunchanged\nno\n");
            assert!(!place.join("new").exists() && !place.join("sub/new").exists());
            assert_eq!(std::fs::read(place.join("note")).unwrap(), b"from outside");
        },
    );
}

#[test]
fn what_is_written_to_a_volume_belongs_to_the_caller() {
    let script = "echo written > /data/new; mkdir /data/made; echo y > /data/made/z; \
                  echo more >> /data/note; stat -c %U /data/new /data/note";
    with_volume(
        "what_is_written_to_a_volume_belongs_to_the_caller",
        script,
        "/data",
        VolumeAccess::ReadWrite,
        |report, place| {
            assert_eq!(report.stdout, "sandbox\nsandbox\n", "{}", report.stderr);
            let caller = rustix::process::geteuid().as_raw();
            for name in ["new", "made", "made/z", "note"] {
                let owner = std::fs::metadata(place.join(name)).unwrap().uid();
                assert_eq!(owner, caller, "{name} belongs to {owner}");
            }
            assert_eq!(std::fs::read_to_string(place.join("note")).unwrap(), "from outsidemore\n");
        },
    );
}

#[test]
fn what_is_written_to_another_owners_volume_belongs_to_that_owner() {
    if !rustix::process::geteuid().is_root() {
        return skip("another_owners_volume", "only root can give a directory away");
    }
    with_each_backend_that_has(&[Feature::Volumes], |sandbox| {
        let place = shown();
        // User and group differ on purpose.
        std::os::unix::fs::chown(place.path(), Some(4321), Some(1234)).unwrap();
        let shared = volume(place.path(), "/data", VolumeAccess::ReadWrite);
        let request = bash("touch /data/new && stat -c %U:%G /data/new").volume(shared);
        let Some(report) = execute("another_owners_volume", sandbox, request) else { return };
        assert_eq!(report.stdout, "sandbox:sandbox\n", "{}", report.stderr);
        let made = std::fs::metadata(place.path().join("new")).unwrap();
        assert_eq!((made.uid(), made.gid()), (4321, 1234));
    });
}

#[test]
fn a_volume_may_lie_in_the_work_directory() {
    let script = "pwd; cat input/note; echo result > input/out";
    with_volume(
        "a_volume_may_lie_in_the_work_directory",
        script,
        "/work/input",
        VolumeAccess::ReadWrite,
        |report, place| {
            assert_eq!(report.stdout, "/work\nfrom outside");
            assert_eq!(std::fs::read_to_string(place.join("out")).unwrap(), "result\n");
        },
    );
}

#[test]
fn files_of_a_volume_are_not_brought_back_as_results() {
    as_both("files_of_a_volume_are_not_brought_back_as_results", |sandbox| {
        let place = shown();
        let request = bash("echo own > own")
            .volume(volume(place.path(), "/work/input", VolumeAccess::ReadOnly))
            .collect("**");
        let Some(report) = execute("volume_not_collected", sandbox, request) else {
            return;
        };
        let paths: Vec<&str> = report.output_files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["own"]);
    });
}

/// The options of the uppermost mount at `/data`, as the program sees them.
const MOUNT_OPTIONS: &str =
    "awk '$5 == \"/data\" { found = $6 } END { print found }' /proc/self/mountinfo";

#[test]
fn no_program_on_a_volume_has_a_users_rights_and_no_device_works() {
    as_both("no_program_on_a_volume_has_a_users_rights_and_no_device_works", |sandbox| {
        for (access, word) in [(VolumeAccess::ReadOnly, "ro"), (VolumeAccess::ReadWrite, "rw")] {
            let place = shown();
            let copy = place.path().join("id");
            std::fs::copy("/usr/bin/id", &copy).unwrap();
            std::fs::set_permissions(&copy, std::fs::Permissions::from_mode(0o4755)).unwrap();
            let request = bash(&format!("/data/id -u; id -u; {MOUNT_OPTIONS}"));
            let request = request.volume(volume(place.path(), "/data", access));
            let Some(report) = execute("volume_nosuid", sandbox, request) else {
                return;
            };
            let lines: Vec<&str> = report.stdout.lines().collect();
            let &[there, usual, options] = lines.as_slice() else { panic!("{lines:?}") };
            assert_eq!(there, usual, "{}", report.stderr);
            let options: Vec<&str> = options.split(',').collect();
            for option in [word, "nosuid", "nodev"] {
                assert!(options.contains(&option), "{option}: {options:?}");
            }
        }
    });
}

#[test]
fn a_device_on_a_volume_cannot_be_opened() {
    with_each_backend_that_has(&[Feature::Volumes], |sandbox| {
        let place = shown();
        let device = place.path().join("zero");
        let zero = rustix::fs::makedev(1, 5);
        let made = rustix::fs::mknodat(CWD, &device, FileType::CharacterDevice, Mode::RWXU, zero);
        if made.is_err() || std::fs::File::open(&device).is_err() {
            return skip("a_device_on_a_volume", "this user can make no device that works");
        }
        let request = bash("stat -c %F /data/zero; head -c 1 /data/zero | wc -c");
        let request = request.volume(volume(place.path(), "/data", VolumeAccess::ReadWrite));
        let Some(report) = execute("a_device_on_a_volume", sandbox, request) else { return };
        assert_eq!(report.stdout, "character special file\n0\n", "{}", report.stderr);
    });
}

#[test]
fn a_single_file_can_be_shown_and_several_volumes_together() {
    as_both("a_single_file_can_be_shown_and_several_volumes_together", |sandbox| {
        let (first, second) = (shown(), shown());
        std::fs::write(second.path().join("note"), "second").unwrap();
        let request = bash("cat /one/note /deep/er/note; echo; ls / | tr '\\n' ' '")
            .volume(volume(first.path(), "/one", VolumeAccess::ReadOnly))
            .volume(volume(&second.path().join("note"), "/deep/er/note", VolumeAccess::ReadOnly));
        let Some(report) = execute("two_volumes", sandbox, request) else {
            return;
        };
        let text = &report.stdout;
        assert!(text.starts_with("from outsidesecond\n"), "{text} {}", report.stderr);
        assert!(text.contains("one ") && text.contains("deep "), "{text}");
    });
}

#[test]
fn a_volume_is_gone_in_the_next_execution() {
    as_both("a_volume_is_gone_in_the_next_execution", |sandbox| {
        let place = shown();
        let with =
            bash("cat /data/note").volume(volume(place.path(), "/data", VolumeAccess::ReadOnly));
        let Some(report) = execute("volume_gone", sandbox, with) else {
            return;
        };
        assert_eq!(report.stdout, "from outside");
        let report = execute("volume_gone", sandbox, bash("ls -d /data || echo gone")).unwrap();
        assert_eq!(report.stdout, "gone\n");
    });
}

/// Each is mapped by a process of its own, and the processes of several know nothing of each other.
#[test]
fn many_at_once_have_each_their_own_volume() {
    with_each_backend_that_has(&[Feature::Volumes], |sandbox| {
        std::thread::scope(|scope| {
            for number in 0..6 {
                scope.spawn(move || {
                    let place = shown();
                    let text = format!("the note of {number}");
                    std::fs::write(place.path().join("note"), &text).unwrap();
                    let shared = volume(place.path(), "/data", VolumeAccess::ReadOnly);
                    let request = bash("cat /data/note").volume(shared);
                    let report = execute("many_volumes", sandbox, request);
                    assert_eq!(report.expect("bash is there").stdout, text);
                });
            }
        });
    });
}
