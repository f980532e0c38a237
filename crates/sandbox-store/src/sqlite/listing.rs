use std::fmt;
use std::str::FromStr;

use rusqlite::{Connection, params_from_iter};

use super::columns::micros;
use super::executions::{record, select};
use super::query::Query;
use crate::{ExecutionFilter, ExecutionRecord, Page, StoreError};

/// The maximum length of a page, whatever the caller asks for: pages are held in memory.
const MAX_PAGE_SIZE: u32 = 1000;

/// A position in a listing: the last execution before it. Clients send it back as they received it, and
/// executions accepted meanwhile do not shift it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cursor {
    /// In microseconds since 1970.
    created_at: i64,
    /// Distinguishes executions that were accepted in the same microsecond.
    id: String,
}

pub(super) fn list(connection: &Connection, filter: &ExecutionFilter) -> Result<Page, StoreError> {
    let limit = filter.limit.clamp(1, MAX_PAGE_SIZE);
    // One row more than the page shows whether there is another page.
    let query = query(filter, limit + 1)?;
    let mut statement = connection.prepare(&query.text)?;
    let rows = statement.query_and_then(params_from_iter(query.values), record)?;
    let mut executions: Vec<ExecutionRecord> = rows.collect::<Result<_, _>>()?;
    let has_more = executions.len() > limit as usize;
    executions.truncate(limit as usize);
    let next = executions.last().filter(|_| has_more).map(|last| Cursor::after(last).to_string());
    Ok(Page { executions, next })
}

fn query(filter: &ExecutionFilter, limit: u32) -> Result<Query, StoreError> {
    let mut query = Query::new(select!("WHERE TRUE"));
    if let Some(owner) = &filter.owner {
        // `IS`, because the owner may be NULL.
        query.and("owner IS ?", [owner.clone().into()]);
    }
    if let Some(language) = &filter.language {
        query.and("language = ?", [language.clone().into()]);
    }
    if let Some(status) = filter.status {
        query.and("status = ?", [status.name().to_owned().into()]);
    }
    for (name, value) in &filter.labels {
        query.and(
            "EXISTS (SELECT 1 FROM labels WHERE execution = executions.id AND name = ? AND value = ?)",
            [name.clone().into(), value.clone().into()],
        );
    }
    if let Some(since) = filter.since {
        query.and("created_at >= ?", [micros(since).into()]);
    }
    if let Some(until) = filter.until {
        query.and("created_at < ?", [micros(until).into()]);
    }
    if let Some(cursor) = &filter.cursor {
        let cursor: Cursor = cursor.parse()?;
        query.and("(created_at, id) < (?, ?)", [cursor.created_at.into(), cursor.id.into()]);
    }
    query.append(" ORDER BY created_at DESC, id DESC LIMIT ?", [limit.into()]);
    Ok(query)
}

impl Cursor {
    fn after(execution: &ExecutionRecord) -> Self {
        Self { created_at: execution.created_at.timestamp_micros(), id: execution.id.clone() }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.created_at, self.id)
    }
}

impl FromStr for Cursor {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        text.split_once('.')
            .and_then(|(time, id)| Some(Self { created_at: time.parse().ok()?, id: id.to_owned() }))
            .ok_or(StoreError::InvalidCursor)
    }
}
