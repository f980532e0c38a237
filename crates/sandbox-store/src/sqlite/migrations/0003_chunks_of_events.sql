-- Many events to a row, and no index beside the table: an execution has a handful of short events, and
-- a row and an index entry for each was much of what its end had to write.

CREATE TABLE event_chunks (
    execution TEXT NOT NULL REFERENCES executions (id) ON DELETE CASCADE,
    -- The numbers of the first and the last event; there are no gaps between them.
    first     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    -- One event a line.
    events    TEXT NOT NULL,
    PRIMARY KEY (execution, first)
) STRICT, WITHOUT ROWID;

INSERT INTO event_chunks SELECT execution, seq, seq, json FROM events;

DROP TABLE events;
