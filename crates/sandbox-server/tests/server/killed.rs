//! A server that is killed loses nothing that it had accepted.

use sandbox_tests::wait::wait_for;

use crate::server::{Belongings, SOON, Server};

const EXECUTIONS: usize = 20;

/// Killed when some are over, some run and some wait.
#[test]
fn every_accepted_execution_ends_although_the_server_was_killed() {
    for finished_before in [0, 5] {
        let data = tempfile::tempdir().expect("there is room for temporary files");
        let server = Server::start(data.path());
        let ids: Vec<_> = (0..EXECUTIONS)
            .map(|n| server.accept(&format!("import time; time.sleep(0.2); print({n})")))
            .collect();
        if finished_before > 0 {
            server.final_report(&ids[finished_before - 1]);
        } else {
            server.wait_until_running(&ids[0]);
        }
        let belongings = Belongings::of(&server);
        server.kill();
        belongings.assert_gone();

        let server = Server::start(data.path());
        for (n, id) in ids.iter().enumerate() {
            let report = server.final_report(id);
            assert_eq!(report["status"], "completed", "{id}: {report}");
            assert_eq!(report["stdout"], format!("{n}\n"), "{id}: {report}");
        }
    }
}

/// What kills its server again and again must not do so for ever.
#[test]
fn an_execution_that_was_interrupted_twice_is_not_begun_again() {
    let data = tempfile::tempdir().expect("there is room for temporary files");
    let server = Server::start(data.path());
    let id = server.accept("import time; time.sleep(9)");
    wait_until_remembered_as_running(&server, &id);
    server.kill();
    let server = Server::start(data.path());
    wait_until_remembered_as_running(&server, &id);
    server.kill();
    let server = Server::start(data.path());
    let report = server.final_report(&id);
    assert_eq!(report["status"], "error", "{report}");
}

/// The history is read from the database, which hears of a start a moment later than clients do.
fn wait_until_remembered_as_running(server: &Server, id: &str) {
    let is_listed =
        || server.get("/api/v1/executions?status=running").body.contains(id).then_some(());
    assert!(wait_for(SOON, is_listed).is_some(), "{id} was never begun");
}
