use super::*;

/// Longer than any build takes on a busy machine.
const BUILD_TIMEOUT: std::time::Duration = std::time::Duration::from_mins(2);

const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(50);

fn six(name: &str) -> Value {
    json!({"name": name, "language": "python", "packages": ["six==1.16.0"]})
}

fn uses(name: &str) -> Value {
    let code = "import six; print(six.__version__)";
    json!({"language": "python", "code": code, "environment": name})
}

/// A server whose wait limit exceeds the duration of a build.
async fn server_with_long_wait() -> Server {
    Server::with(|config| {
        config.wait_limit = BUILD_TIMEOUT;
        config.requests_per_minute = 0;
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_environment_is_built_used_and_removed_by_its_owner_alone() {
    let server = server_with_long_wait().await;
    let permitted = || server.permitted_key(&[Permission::Packages]);
    let [one, other] = [permitted().await, permitted().await];
    let [one, other] = [&[("x-api-key", &*one)], &[("x-api-key", &*other)]];
    let response = server.post_with("/api/v1/environments", &six("six"), one).await;
    let entry = response.expect(201);
    assert_eq!(response.header("location"), "/api/v1/environments/six");
    assert_eq!((&entry["status"], &entry["shared"]), (&json!("ready"), &json!(false)));
    assert_eq!(entry["packages"], json!([{"name": "six", "version": "1.16.0"}]));
    let location = response.header("location");
    assert_eq!(server.get_with(location, one).await.expect(200), entry);

    let report = server.post_with("/api/v1/execute", &uses("six"), one).await.expect(200);
    assert_eq!(report["stdout"], "1.16.0\n", "{report}");

    // Other clients do not see it, and can use its name.
    server.get_with(location, other).await.problem(404, "not_found");
    let listed = server.get_with("/api/v1/environments", other).await.expect(200);
    assert!(listed.as_array().unwrap().iter().all(|entry| entry["shared"] == true), "{listed}");
    let refused = server.post_with("/api/v1/execute", &uses("six"), other).await;
    let detail = refused.problem(400, "invalid_field");
    assert!(detail.starts_with("environment: there is no 'six'"), "{detail}");
    let remove = |headers| server.send(request(Method::DELETE, location, headers, Body::empty()));
    remove(other).await.problem(404, "not_found");

    let again = server.post_with("/api/v1/environments", &six("six"), one).await;
    again.problem(409, "already_exists");
    assert_eq!(remove(one).await.status, 204);
    server.get_with(location, one).await.problem(404, "not_found");
    server.post_with("/api/v1/execute", &uses("six"), one).await.problem(400, "invalid_field");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asynchronous_build_is_found_by_its_name() {
    let server = server_with_long_wait().await;
    let response = server.post("/api/v1/environments?wait=false", &six("later")).await;
    let entry = response.expect(202);
    assert_eq!((&entry["status"], &entry["packages"]), (&json!("building"), &json!([])));
    server.post("/api/v1/environments", &six("later")).await.problem(409, "already_exists");
    let location = response.header("location").to_owned();
    let built = async {
        loop {
            let entry = server.get(&location).await.expect(200);
            if entry["status"] != "building" {
                return entry;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    let built = tokio::time::timeout(BUILD_TIMEOUT, built).await.expect("it takes too long");
    assert_eq!(built["status"], "ready", "{built}");
    assert_eq!(server.delete(&location).await.status, 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_build_can_be_cancelled() {
    // One execution uses the only slot, so that the build waits.
    let server = Server::with(|config| config.concurrency = 1).await;
    let running = server.post("/api/v1/execute?wait=false", &endless()).await;
    let response = server.post("/api/v1/environments?wait=false", &six("waits")).await;
    assert_eq!(response.expect(202)["status"], "building");
    let location = response.header("location").to_owned();
    assert_eq!(server.delete(&location).await.status, 204);
    server.get(&location).await.problem(404, "not_found");
    server.delete(running.header("location")).await.expect(200);
    // The cancelled build has released its slot.
    let report = server.post("/api/v1/execute", &python("print(1)")).await.expect(200);
    assert_eq!(report["stdout"], "1\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_package_manager_are_reported() {
    let server = server_with_long_wait().await;
    let mut body = six("broken");
    body["packages"] = json!(["six==0.0.0.1"]);
    let detail = server.post("/api/v1/environments", &body).await.problem(422, "packages_refused");
    assert!(detail.contains("six==0.0.0.1"), "{detail}");
    // A failed build leaves the name free.
    server.get("/api/v1/environments/broken").await.problem(404, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_fields_are_refused_by_name() {
    let server = Server::start().await;
    for (field, value, expected) in [
        ("name", json!("../x"), "name: "),
        ("name", json!(""), "name: "),
        ("packages", json!([]), "packages: must have 1 to 200"),
        ("packages", json!(["--index-url=x"]), "packages: "),
        ("language", json!("a b"), "language: "),
    ] {
        let mut body = six("x");
        body[field] = value;
        let detail = server.post("/api/v1/environments", &body).await.problem(400, "invalid_field");
        assert!(detail.starts_with(expected), "{detail}");
    }
    let mut body = six("x");
    body["language"] = json!("pyhton");
    server.post("/api/v1/environments", &body).await.problem(400, "unknown_language");
    body["language"] = json!("bash");
    let detail = server.post("/api/v1/environments", &body).await.problem(400, "invalid_field");
    assert!(detail.contains("packages are not supported for bash"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_environments_of_a_client_is_limited() {
    let server = Server::with(|config| {
        config.environments_per_key = 1;
        config.concurrency = 1;
    })
    .await;
    // Waiting builds count too.
    let running = server.post("/api/v1/execute?wait=false", &endless()).await;
    server.post("/api/v1/environments?wait=false", &six("one")).await.expect(202);
    let refused = server.post("/api/v1/environments?wait=false", &six("two")).await;
    refused.problem(409, "too_many_environments");
    assert_eq!(server.delete("/api/v1/environments/one").await.status, 204);
    server.post("/api/v1/environments?wait=false", &six("two")).await.expect(202);
    assert_eq!(server.delete("/api/v1/environments/two").await.status, 204);
    server.delete(running.header("location")).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_do_not_reveal_files_of_the_server() {
    let server = Server::start().await;
    let directory = server.state.config.environments_directory().join("keyless");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("damaged.json"), "{").unwrap();
    for response in [
        server.post("/api/v1/execute", &uses("damaged")).await,
        server.get("/api/v1/environments/damaged").await,
    ] {
        let detail = response.problem(500, "internal");
        assert!(!detail.contains("damaged.json"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_and_removals_are_in_the_audit_log() {
    let server = Server::with(|config| config.concurrency = 1).await;
    let running = server.post("/api/v1/execute?wait=false", &endless()).await;
    server.post("/api/v1/environments?wait=false", &six("watched")).await.expect(202);
    assert_eq!(server.delete("/api/v1/environments/watched").await.status, 204);
    server.delete(running.header("location")).await.expect(200);
    let actions = async {
        loop {
            let records = server.state.store.audit_log(10).await.unwrap();
            let done = |action: &str| {
                records.iter().any(|record| record.action == action && record.subject == "watched")
            };
            if done("environment.build") && done("environment.remove") {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(BUILD_TIMEOUT, actions).await.expect("it is not written");
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_can_be_turned_off() {
    let server = Server::with(|config| config.packages = crate::config::Packages::Off).await;
    let detail = server.post("/api/v1/environments", &six("x")).await.problem(403, "forbidden");
    assert!(detail.contains("'packages' is off"), "{detail}");
    let mut body = python("1");
    body["packages"] = json!(["six"]);
    let detail = server.post("/api/v1/execute", &body).await.problem(400, "invalid_field");
    assert!(detail.starts_with("packages: "), "{detail}");
}
