use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, SecondsFormat, Utc};
use sandbox::Status;
use sandbox_api::{History, Summary};
use sandbox_store::{ExecutionFilter, ExecutionRecord};
use serde_json::Value;

use super::caller::{Caller, Read};
use super::error::ApiError;
use super::query::Query;
use crate::state::AppState;

/// Executions on a page.
const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 500;

/// List executions, newest first.
#[utoipa::path(
    get,
    path = "/api/v1/executions",
    tag = "executions",
    operation_id = "executions",
    params(
        ("language" = Option<String>, Query, description = "Only this language, by name, not by alias"),
        ("status" = inline(Option<sandbox_api::Status>), Query, description = "Only this status"),
        ("label" = inline(Option<super::parameters::LabelParameter>), Query, description = "Only executions with this label, as `NAME:VALUE`; repeatable, then all must match"),
        ("since" = Option<String>, Query, format = DateTime, description = "Accepted at or after this time (RFC 3339)"),
        ("until" = Option<String>, Query, format = DateTime, description = "Accepted before this time (RFC 3339)"),
        ("limit" = Option<u32>, Query, description = "Maximum number of executions on the page. Default: 50", minimum = 1, maximum = 500),
        ("cursor" = Option<String>, Query, description = "`next` of the previous page"),
    ),
    responses((status = 200, description = "A page of executions", body = History))
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller<Read>,
    mut query: Query,
) -> Result<Json<History>, ApiError> {
    let filter = ExecutionFilter {
        language: query.take("language")?,
        status: query.parse("status", status)?,
        labels: labels(&query.take_all("label"))
            .map_err(|reason| ApiError::invalid("label", reason))?,
        since: query.parse("since", time)?,
        until: query.parse("until", time)?,
        cursor: query.take("cursor")?,
        limit: query.parse("limit", limit)?.unwrap_or(DEFAULT_LIMIT),
        ..caller.visible()
    };
    query.reject_unknown()?;
    let page = state.work.list(filter).await?;
    let executions = page.executions.into_iter().map(summary).collect();
    Ok(Json(History { executions, next: page.next }))
}

fn labels(texts: &[String]) -> Result<BTreeMap<String, String>, String> {
    let mut labels = BTreeMap::new();
    for text in texts {
        let (name, value) = label(text)?;
        if labels.insert(name, value).is_some() {
            return Err(format!("'{text}': the name occurs twice"));
        }
    }
    Ok(labels)
}

fn label(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once(':').filter(|(name, _)| !name.is_empty());
    let parts = parts.map(|(name, value)| (name.to_owned(), value.to_owned()));
    parts.ok_or_else(|| format!("'{text}' does not have the form NAME:VALUE"))
}

fn status(text: &str) -> Result<Status, String> {
    let status = serde_json::from_value(Value::from(text));
    status.map_err(|_| format!("unknown status '{text}'"))
}

fn time(text: &str) -> Result<DateTime<Utc>, String> {
    // In a query, an unescaped plus decodes to a space.
    let time = DateTime::parse_from_rfc3339(&text.replace(' ', "+"));
    time.map(|time| time.to_utc())
        .map_err(|_| format!("'{text}' is not a time such as 2026-01-15T10:30:00Z"))
}

fn limit(text: &str) -> Result<u32, String> {
    let limit = text.parse().ok().filter(|limit| (1..=MAX_LIMIT).contains(limit));
    limit.ok_or_else(|| format!("'{text}' is not a number from 1 to {MAX_LIMIT}"))
}

fn summary(record: ExecutionRecord) -> Summary {
    let rfc3339 = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
    let report = record.report.as_ref();
    let field = |name: &str| report.and_then(|report| report.get(name));
    let text = |name: &str| field(name).and_then(Value::as_str).map(ToOwned::to_owned);
    Summary {
        version: text("version"),
        exit_code: field("exit_code").and_then(Value::as_i64),
        execution_time_ms: field("execution_time_ms").and_then(Value::as_f64),
        memory_used_kb: field("memory_used_kb").and_then(Value::as_u64),
        error: text("error"),
        id: record.id,
        owner: record.owner,
        language: record.language,
        status: record.status.name().to_owned(),
        labels: record.labels,
        created_at: rfc3339(record.created_at),
        started_at: record.started_at.map(rfc3339),
        finished_at: record.finished_at.map(rfc3339),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_parsed_or_rejected() {
        assert_eq!(label("a:b:c").unwrap(), ("a".into(), "b:c".into()));
        assert_eq!(label("a:").unwrap(), ("a".into(), String::new()));
        assert!(label(":b").is_err() && label("ab").is_err());
        let two = |first: &str, second: &str| labels(&[first.to_owned(), second.to_owned()]);
        assert_eq!(two("a:b", "c:d").unwrap().len(), 2);
        assert!(two("a:b", "a:c").is_err());
        assert_eq!(status("memory_limit").unwrap(), Status::MemoryLimit);
        assert!(status("Completed").is_err() && status("").is_err());
        assert_eq!(time("2026-01-15T10:30:00 02:00"), time("2026-01-15T08:30:00Z"));
        assert!(time("yesterday").is_err());
        assert_eq!(limit("500").unwrap(), 500);
        assert!(limit("0").is_err() && limit("501").is_err() && limit("-1").is_err());
    }
}
