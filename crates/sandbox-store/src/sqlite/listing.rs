use rusqlite::{Connection, params_from_iter};

use super::executions::{record, select};
use super::query::Query;
use super::value::micros;
use crate::cursor::Cursor;
use crate::{ExecutionFilter, ExecutionRecord, Page, StoreError};

/// No page is longer, whatever was asked for: a page is held in memory whole.
const LONGEST_PAGE: u32 = 1000;

pub(super) fn list(connection: &Connection, filter: &ExecutionFilter) -> Result<Page, StoreError> {
    let limit = filter.limit.clamp(1, LONGEST_PAGE);
    // One more than asked for tells whether there is another page.
    let query = matching(filter, limit + 1)?;
    let mut statement = connection.prepare(&query.text)?;
    let rows = statement.query_and_then(params_from_iter(query.values), record)?;
    let mut executions: Vec<ExecutionRecord> = rows.collect::<Result<_, _>>()?;
    let is_more = executions.len() > limit as usize;
    executions.truncate(limit as usize);
    let next = executions.last().filter(|_| is_more).map(|last| Cursor::after(last).to_string());
    Ok(Page { executions, next })
}

fn matching(filter: &ExecutionFilter, most: u32) -> Result<Query, StoreError> {
    let mut query = Query::new(select!("WHERE TRUE"));
    if let Some(owner) = &filter.owner {
        // `IS`, since nobody is an owner too.
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
    query.then(" ORDER BY created_at DESC, id DESC LIMIT ?", [most.into()]);
    Ok(query)
}
