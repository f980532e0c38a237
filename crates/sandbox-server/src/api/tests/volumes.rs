//! Directories of the host that a request mounts.

use std::path::Path;

use super::*;

/// A server that shares the directory `shared`, which has a file.
async fn sharing(directory: &TempDir) -> Server {
    let shared = directory.path().join("shared");
    std::fs::create_dir(&shared).unwrap();
    std::fs::write(shared.join("file"), "of the host").unwrap();
    std::fs::create_dir(directory.path().join("other")).unwrap();
    Server::with(|config| config.volumes_from = vec![shared]).await
}

fn mounting(host: &Path, access: &str) -> Value {
    let mut body = python("print(open('/data/file').read()); open('/data/new', 'w').write('x')");
    body["volumes"] = json!([format!("{}:/data{access}", host.display())]);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permitted_client_mounts_directories_that_the_operator_shares() {
    let directory = tempfile::tempdir().unwrap();
    let server = sharing(&directory).await;
    let key = server.permitted_key(&[Permission::Volumes]).await;
    let key = [("x-api-key", &*key)];
    let run = async |path: &str, access: &str| {
        let body = mounting(&directory.path().join(path), access);
        server.post_with("/api/v1/execute", &body, &key).await
    };
    let report = run("shared", "").await.expect(200);
    assert_eq!(report["stdout"], "of the host\n", "{report}");
    assert_eq!(report["exit_code"], 1, "a volume is read-only by default: {report}");
    let report = run("shared", ":rw").await.expect(200);
    assert_eq!(report["status"], "completed", "{report}");
    assert_eq!(std::fs::read_to_string(directory.path().join("shared/new")).unwrap(), "x");
    for path in ["other", "missing", ""] {
        let detail = run(path, "").await.problem(400, "invalid_field");
        assert!(detail.starts_with("volumes: ") && detail.contains("allowed"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_volume_needs_the_permission_and_the_setting() {
    let directory = tempfile::tempdir().unwrap();
    let server = sharing(&directory).await;
    let body = mounting(&directory.path().join("shared"), "");
    server.post("/api/v1/execute", &body).await.problem(403, "not_permitted");
    let admin = server.key(&[Scope::Admin]).await;
    let refused = server.post_with("/api/v1/execute", &body, &[("x-api-key", &*admin)]).await;
    let detail = refused.problem(403, "not_permitted");
    assert!(detail.contains("'volumes'"), "{detail}");

    let server = Server::start().await;
    let key = server.permitted_key(&[Permission::Volumes]).await;
    let refused = server.post_with("/api/v1/execute", &body, &[("x-api-key", &*key)]).await;
    let detail = refused.problem(400, "invalid_field");
    assert!(detail.contains("no volumes are allowed here"), "{detail}");
}
