use super::*;

async fn ids(server: &Server, query: &str) -> Vec<String> {
    let page = server.get(&format!("/api/v1/executions{query}")).await.expect(200);
    let executions = page["executions"].as_array().unwrap().iter();
    executions.map(|execution| execution["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn executions_are_listed_newest_first_and_filtered() {
    let server = Server::start().await;
    let run = async |code: &str, label: &str| {
        let mut body = python(code);
        body["labels"] = json!({"team": label});
        let report = server.post("/api/v1/execute", &body).await.expect(200);
        report["id"].as_str().unwrap().to_owned()
    };
    let good = run("print(1)", "a:b").await;
    let bad = run("raise SystemExit(3)", "c").await;

    assert_eq!(ids(&server, "").await, [&*bad, &good]);
    assert_eq!(ids(&server, "?language=python&limit=1").await, [&*bad]);
    assert_eq!(ids(&server, "?language=ruby").await, [""; 0]);
    assert_eq!(ids(&server, "?status=runtime_error").await, [&*bad]);
    assert_eq!(ids(&server, "?label=team:a:b").await, [&*good]);
    assert_eq!(ids(&server, "?label=team:a:b&label=colour:red").await, [""; 0]);
    assert_eq!(ids(&server, "?since=2020-01-01T00:00:00Z").await.len(), 2);
    assert_eq!(ids(&server, "?until=2020-01-01T00:00:00+02:00").await, [""; 0]);

    let page = server.get("/api/v1/executions?limit=1").await.expect(200);
    let summary = &page["executions"][0];
    assert_eq!(summary["exit_code"], 3);
    assert_eq!(summary["labels"], json!({"team": "c"}));
    assert!(summary["finished_at"].is_string() && summary.get("stdout").is_none(), "{summary}");
    let cursor = page["next"].as_str().unwrap();
    let next = server.get(&format!("/api/v1/executions?limit=1&cursor={cursor}")).await.expect(200);
    assert_eq!(next["executions"][0]["id"], *good);
    assert!(next["next"].is_null(), "{next}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_filter_is_refused_by_name() {
    let server = Server::start().await;
    let wrong = [
        "status=done",
        "label=team",
        "since=yesterday",
        "until=1",
        "limit=0",
        "limit=501",
        "cursor=nonsense",
        "colour=red",
    ];
    for filter in wrong {
        let response = server.get(&format!("/api/v1/executions?{filter}")).await;
        let detail = response.problem(400, "invalid_field");
        let name = filter.split('=').next().unwrap();
        assert!(detail.starts_with(&format!("{name}: ")), "{filter}: {detail}");
    }
}
