//! The HTML pages, in a headless browser.

use std::path::Path;
use std::process::Command;

use sandbox_tests::skip::skip;
use serde_json::Value;

use crate::server_process::Server;

/// Paths of Chromium on Debian and Ubuntu.
const BROWSERS: [&str; 3] =
    ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium", "/usr/bin/google-chrome"];
/// Virtual time for scripts, in milliseconds.
const TIME_FOR_SCRIPTS: &str = "10000";

/// A page after its scripts have run.
struct RenderedPage {
    document: String,
    console: String,
    /// The URLs of all requests.
    requests: Vec<String>,
}

/// Renders a page. `None` without a browser.
fn render(name: &str, server: &Server, path: &str) -> Option<RenderedPage> {
    let Some(browser) = BROWSERS.iter().find(|path| Path::new(path).exists()) else {
        skip(name, "there is no browser: scripts/setup test installs one");
        return None;
    };
    let profile = tempfile::tempdir().expect("a temporary directory can be created");
    let network = profile.path().join("network.json");
    let shown = Command::new(browser)
        // Chromium's sandbox does not work as root; the page is trusted.
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"])
        .args(["--disable-background-networking", "--no-first-run", "--enable-logging=stderr"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--log-net-log={}", network.display()))
        .arg(format!("--virtual-time-budget={TIME_FOR_SCRIPTS}"))
        .arg("--dump-dom")
        .arg(format!("http://{}{path}", server.address))
        .output()
        .expect("the browser can be started");
    assert!(shown.status.success(), "{shown:?}");
    let console = String::from_utf8_lossy(&shown.stderr);
    let console = console.lines().filter(|line| line.contains("CONSOLE")).collect();
    let log = std::fs::read_to_string(&network).expect("the browser wrote its log");
    let document = String::from_utf8(shown.stdout).expect("a page is text");
    Some(RenderedPage { document, console, requests: request_urls(&log) })
}

/// The URLs of all requests in a NetLog.
fn request_urls(log: &str) -> Vec<String> {
    let log: Value = serde_json::from_str(log).expect("the log is JSON");
    let start = &log["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"];
    assert!(start.is_number(), "the log has another form");
    let events = log["events"].as_array().expect("a log has events").iter();
    let started = events.filter(|event| event["type"] == *start);
    started.filter_map(|event| Some(event["params"]["url"].as_str()?.to_owned())).collect()
}

#[test]
fn the_pages_of_the_api_work_in_a_browser() {
    let data = tempfile::tempdir().expect("a temporary directory can be created");
    let server = Server::start(data.path());
    for (path, expected) in [
        ("/", &["sandboxd", "/openapi.json", "curl http://127.0.0.1:"][..]),
        (
            "/docs",
            &["/api/v1/execute/{id}/stream", "/api/v1/batch", "ExecuteRequest", "memory_limit_mb"],
        ),
    ] {
        let Some(shown) = render("pages in a browser", &server, path) else {
            return;
        };
        for text in expected {
            assert!(shown.document.contains(text), "{path} has no {text}:\n{}", shown.document);
        }
        assert_eq!(shown.console, "", "{path}");
        let ours = format!("http://{}/", server.address);
        let elsewhere: Vec<_> =
            shown.requests.iter().filter(|url| !url.starts_with(&ours)).collect();
        assert!(elsewhere.is_empty(), "{path} asks for {elsewhere:?}");
        assert!(shown.requests.contains(&format!("http://{}{path}", server.address)));
    }
}
