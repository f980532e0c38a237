-- With the owner, so that a sweep adds up the sizes of each owner without reading a single execution.
DROP INDEX executions_finished;
CREATE INDEX executions_finished ON executions (finished_at, id, bytes, owner)
    WHERE finished_at IS NOT NULL;
