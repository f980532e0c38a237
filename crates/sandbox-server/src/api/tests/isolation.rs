//! Who builds the walls, as far as the server's owner lets clients choose.

use std::time::Duration;

use sandbox::Isolation;
use sandbox_tests::skip::skip;

use super::*;

const BOTH: &[Isolation] = &[Isolation::Native, Isolation::Runc];

/// A server that permits native walls and containers of runc, if this host has them.
async fn with_runc(test: &str, order: &[Isolation]) -> Option<Server> {
    let found = sandbox::Sandbox::builder().isolations();
    let runc = found.iter().find(|status| status.isolation == Isolation::Runc).unwrap();
    if let Some(reason) = &runc.unavailable {
        skip(test, reason);
        return None;
    }
    let set_up = |config: &mut Config| {
        config.isolations = BOTH.to_vec();
        config.isolation_order = order.to_vec();
    };
    Some(Server::with(set_up).await)
}

fn behind(isolation: &str) -> Value {
    json!({"language": "python", "code": "print(6 * 7)", "isolation": isolation})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_chooses_among_what_is_permitted() {
    let Some(server) = with_runc("a client chooses", BOTH).await else { return };
    // The second of each is checked at once, since its language is known by then.
    for isolation in ["native", "runc", "native", "runc"] {
        let report = server.post("/api/v1/execute", &behind(isolation)).await.expect(200);
        assert_eq!((&report["isolation"], &report["stdout"]), (&isolation.into(), &"42\n".into()));
        assert!(report.get("isolation_reason").is_none(), "{report}");
        let path = format!("/api/v1/execute/{}", report["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.expect(200), report);
    }
    for isolation in ["native", "runc"] {
        let counted = format!(
            r#"sandboxd_executions_total{{language="python",isolation="{isolation}",status="completed"}} 2"#
        );
        // Whoever waits for a report does not wait for the counting.
        let is_counted =
            async { while !text_of(&server.get("/metrics").await).contains(&counted) {} };
        tokio::time::timeout(Duration::from_secs(30), is_counted).await.expect(&counted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_leaves_the_choice_gets_what_is_preferred_and_the_reason() {
    let runc_first = [Isolation::Runc, Isolation::Native];
    let Some(server) = with_runc("the order of preference", &runc_first).await else { return };
    for body in [python("print(1)"), behind("auto")] {
        let report = server.post("/api/v1/execute", &body).await.expect(200);
        assert_eq!(report["isolation"], "runc", "{report}");
        assert_eq!(report["isolation_reason"], "auto: runc is first in the order of preference");
    }
    let ready = server.get("/api/v1/ready").await.expect(200);
    assert_eq!(ready["isolations"], json!(["native", "runc"]));
    assert_eq!(ready["preferred"], "runc");
    let document = server.get("/openapi.json").await.expect(200);
    let field = &document["components"]["schemas"]["ExecuteRequest"]["properties"]["isolation"];
    assert_eq!(field["enum"], json!(["native", "runc", "auto", null]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_permitted_is_refused_with_what_is() {
    let server = Server::start().await;
    for isolation in ["runc", "magic"] {
        let answer = server.post("/api/v1/execute", &behind(isolation)).await;
        let sentence =
            format!("isolation: '{isolation}' is not permitted here: it is native or auto");
        assert_eq!(answer.problem(400, "invalid_field"), sentence);
    }
    let report = server.post("/api/v1/execute", &behind("auto")).await.expect(200);
    assert_eq!(report["isolation"], "native");
    assert_eq!(report["isolation_reason"], "auto: native is first in the order of preference");
    let ready = server.get("/api/v1/ready").await.expect(200);
    assert_eq!(ready["isolations"], json!(["native"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_walls_cannot_do_is_told_in_the_report() {
    let Some(server) = with_runc("an allow-list behind runc", BOTH).await else { return };
    let mut body = behind("runc");
    body["network"] = json!({"mode": "allowlist", "allow": ["example.org:443"]});
    let report = server.post("/api/v1/execute", &body).await.expect(200);
    assert_eq!((&report["status"], &report["isolation"]), (&"error".into(), &"runc".into()));
    assert!(report["error"].as_str().unwrap().contains("allow-list"), "{report}");
}
