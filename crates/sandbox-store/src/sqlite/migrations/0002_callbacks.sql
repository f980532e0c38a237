-- Reports that were promised to somebody. A row is written with its execution and goes when the report
-- has arrived or is given up. It says nothing of whether the execution is over: the other table does.

CREATE TABLE callbacks (
    execution TEXT PRIMARY KEY NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    url       TEXT NOT NULL,
    -- The host of the URL: those that are slow are left out by name.
    host      TEXT NOT NULL,
    tries     INTEGER NOT NULL DEFAULT 0,
    -- Not to be sent before.
    due_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX callbacks_due ON callbacks (due_at, execution);
