//! With a full disk, responses say what is not saved, and the server recovers without a restart.

use std::fs::{File, remove_file};
use std::io::Write as _;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use sandbox_tests::skip::skip;
use sandbox_tests::wait::wait_for;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server_process::{Server, WAIT_TIMEOUT};

/// A file system of 32 MiB, unmounted on drop.
struct SmallDisk(TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            skip("a full disk", "only root can mount a small file system");
            return None;
        }
        let directory = tempfile::tempdir().expect("a temporary directory can be created");
        mount(
            "sandboxd-test",
            directory.path(),
            "tmpfs",
            MountFlags::empty(),
            c"size=32m,mode=700",
        )
        .expect("root can mount a tmpfs");
        Some(Self(directory))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Fills the disk to the last byte.
    fn fill(&self) {
        let mut file = File::create(self.path().join("filler")).expect("the file is accessible");
        for size in [64 << 10, 4 << 10, 1] {
            let piece = vec![0; size];
            while file.write_all(&piece).is_ok() {}
        }
    }

    fn empty(&self) {
        remove_file(self.path().join("filler")).expect("the file is accessible");
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(self.0.path(), UnmountFlags::DETACH);
    }
}

/// Runs a program whose report exceeds the free pages of the database.
fn run(server: &Server) -> Value {
    let body = json!({ "language": "bash", "code": "printf '%050000d' 7" }).to_string();
    let response = server.send("POST", "/api/v1/execute", &[], &body);
    assert_eq!(response.status, 200, "{response:?}");
    let report = response.json();
    assert_eq!(report["status"], "completed", "{report}");
    assert_eq!(report["stdout"].as_str().map(str::len), Some(50_000));
    report
}

/// Whether the server has saved this report.
fn is_found(server: &Server, report: &Value) -> bool {
    let id = report["id"].as_str().expect("an id is text");
    server.get(&format!("/api/v1/execute/{id}")).status == 200
}

/// Waits until `/ready` has this status, and returns the body.
fn wait_until_ready_is(server: &Server, status: u16) -> String {
    let mut last = None;
    let became = wait_for(WAIT_TIMEOUT, || {
        let response = server.get("/api/v1/ready");
        let is_it = response.status == status;
        last = Some(response);
        is_it.then_some(())
    });
    let last = last.expect("there was a response");
    assert!(became.is_some(), "{last:?}");
    last.body
}

#[test]
fn unsaved_reports_say_so_and_ready_fails_until_there_is_room() {
    let Some(disk) = SmallDisk::mount() else { return };
    let server = Server::start(disk.path());
    wait_until_ready_is(&server, 200);
    let kept = run(&server);
    assert!(kept.get("stored").is_none() && is_found(&server, &kept), "{kept}");

    disk.fill();
    let reports: Vec<Value> = (0..30).map(|_| run(&server)).collect();
    assert_eq!(reports.iter().filter(|report| report["stored"] == false).count(), 30);
    let response = wait_until_ready_is(&server, 503);
    assert!(
        response.contains("cannot be stored") && response.contains("\"unavailable\""),
        "{response}"
    );
    let stream = [("Accept", "text/event-stream")];
    let body = json!({ "language": "bash", "code": "printf '%050000d' 7" }).to_string();
    let events = server.send("POST", "/api/v1/execute", &stream, &body);
    assert!(events.body.trim_end().ends_with("\"stored\":false}}"), "{events:?}");
    let later = json!({ "language": "bash", "code": "true" }).to_string();
    for _ in 0..3 {
        let refused = server.send("POST", "/api/v1/execute?wait=false", &[], &later);
        assert_eq!(refused.status, 503, "{refused:?}");
    }
    assert!(is_found(&server, &kept), "saved reports stay readable");

    disk.empty();
    wait_until_ready_is(&server, 200);
    let report = wait_for(WAIT_TIMEOUT, || {
        let report = run(&server);
        (report.get("stored").is_none()).then_some(report)
    });
    assert!(is_found(&server, &report.expect("there is room again")));
    let (status, log) = server.stop();
    assert_eq!(status.code(), Some(0), "{log}");
}

#[test]
fn a_result_is_saved_when_there_is_room_again() {
    let Some(disk) = SmallDisk::mount() else { return };
    let server = Server::start(disk.path());
    let id = server.accept_in("bash", "read -t 2 never < <(sleep 9); printf '%050000d' 7");
    server.wait_until_running(&id);
    disk.fill();
    let report = server.final_report(&id);
    assert_eq!((&report["status"], &report["stored"]), (&json!("completed"), &json!(false)));
    disk.empty();
    let path = format!("/api/v1/execute/{id}");
    let stored = wait_for(WAIT_TIMEOUT, || {
        let report = server.get(&path).json();
        report.get("stored").is_none().then_some(report)
    });
    assert_eq!(stored.expect("it is saved later")["status"], "completed");
}
