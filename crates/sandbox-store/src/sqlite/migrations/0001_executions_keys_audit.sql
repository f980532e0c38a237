-- Times are microseconds since 1970 in UTC: numbers sort and compare as times do.

CREATE TABLE executions (
    id          TEXT PRIMARY KEY NOT NULL,
    -- The empty text is kept free: it stands for "nobody" in the table idempotency.
    owner       TEXT CHECK (owner <> ''),
    language    TEXT NOT NULL,
    status      TEXT NOT NULL,
    priority    INTEGER NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    created_at  INTEGER NOT NULL,
    started_at  INTEGER,
    finished_at INTEGER,
    -- Of the request, labels, report and events: what retention by size adds up.
    bytes       INTEGER NOT NULL,
    labels      TEXT NOT NULL,
    -- Last, since they may be long: the columns before them are read without following them.
    request     TEXT NOT NULL,
    report      TEXT,
    CHECK ((finished_at IS NULL) = (status IN ('queued', 'running'))),
    CHECK ((finished_at IS NULL) = (report IS NULL))
) STRICT;

CREATE INDEX executions_newest ON executions (created_at, id);
CREATE INDEX executions_newest_of_owner ON executions (owner, created_at, id);
CREATE INDEX executions_unfinished ON executions (created_at, id) WHERE finished_at IS NULL;
-- With the size, so that a sweep adds up sizes without reading a single execution.
CREATE INDEX executions_finished ON executions (finished_at, id, bytes)
    WHERE finished_at IS NOT NULL;

-- The labels once more, one by one: names and values are the client's own words, and compared as
-- values they need no quoting, which a path into JSON would.
CREATE TABLE labels (
    execution TEXT NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    name      TEXT NOT NULL,
    value     TEXT NOT NULL,
    PRIMARY KEY (execution, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    execution TEXT NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,
    json      TEXT NOT NULL,
    UNIQUE (execution, seq)
) STRICT;

CREATE TABLE idempotency (
    -- The empty text for clients without a key: in a unique index NULL would differ from NULL.
    owner      TEXT NOT NULL,
    key        TEXT NOT NULL,
    body_hash  TEXT NOT NULL,
    -- With the execution goes the record: an answer that names nothing would help nobody.
    execution  TEXT NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_of_execution ON idempotency (execution);
CREATE INDEX idempotency_oldest ON idempotency (created_at);

CREATE TABLE keys (
    id         TEXT PRIMARY KEY NOT NULL CHECK (id <> ''),
    name       TEXT NOT NULL,
    hash       BLOB NOT NULL,
    -- Names of scopes, with commas between.
    scopes     TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE audit (
    number  INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    actor   TEXT,
    action  TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail  TEXT NOT NULL
) STRICT;
