//! The choice of the isolation backend.

use std::time::Duration;

use sandbox::Isolation;
use sandbox_tests::skip::skip;

use super::*;

const BOTH: &[Isolation] = &[Isolation::Native, Isolation::Runc];

/// A server that permits the backends native and runc. `None` if the host has no runc.
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

fn with_isolation(isolation: &str) -> Value {
    json!({"language": "python", "code": "print(6 * 7)", "isolation": isolation})
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_chooses_a_permitted_backend() {
    let Some(server) = with_runc("a client chooses", BOTH).await else { return };
    // The second round uses the cached toolchain lookup.
    for isolation in ["native", "runc", "native", "runc"] {
        let report = server.post("/api/v1/execute", &with_isolation(isolation)).await.expect(200);
        assert_eq!((&report["isolation"], &report["stdout"]), (&isolation.into(), &"42\n".into()));
        assert!(report.get("isolation_reason").is_none(), "{report}");
        let path = format!("/api/v1/execute/{}", report["id"].as_str().unwrap());
        assert_eq!(server.get(&path).await.expect(200), report);
    }
    for isolation in ["native", "runc"] {
        let counted = format!(
            r#"sandboxd_executions_total{{language="python",isolation="{isolation}",status="completed"}} 2"#
        );
        // Metrics are updated after the response.
        let is_counted =
            async { while !text_of(&server.get("/metrics").await).contains(&counted) {} };
        tokio::time::timeout(Duration::from_secs(30), is_counted).await.expect(&counted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn auto_selects_the_preferred_backend_and_reports_the_reason() {
    let runc_first = [Isolation::Runc, Isolation::Native];
    let Some(server) = with_runc("the order of preference", &runc_first).await else { return };
    for body in [python("print(1)"), with_isolation("auto")] {
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
async fn a_backend_that_is_not_permitted_is_refused_with_those_that_are() {
    let server = Server::start().await;
    for isolation in ["runc", "magic"] {
        let response = server.post("/api/v1/execute", &with_isolation(isolation)).await;
        let sentence =
            format!("isolation: '{isolation}' is not permitted here: it is native or auto");
        assert_eq!(response.problem(400, "invalid_field"), sentence);
    }
    let report = server.post("/api/v1/execute", &with_isolation("auto")).await.expect(200);
    assert_eq!(report["isolation"], "native");
    assert_eq!(report["isolation_reason"], "auto: native is first in the order of preference");
    let ready = server.get("/api/v1/ready").await.expect(200);
    assert_eq!(ready["isolations"], json!(["native"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_says_what_a_backend_does_not_support() {
    let Some(server) = with_runc("an allow-list behind runc", BOTH).await else { return };
    let mut body = with_isolation("runc");
    body["network"] = json!({"mode": "allowlist", "allow": ["example.org:443"]});
    let report = server.post("/api/v1/execute", &body).await.expect(200);
    assert_eq!((&report["status"], &report["isolation"]), (&"error".into(), &"runc".into()));
    assert!(report["error"].as_str().unwrap().contains("allow-list"), "{report}");
}
