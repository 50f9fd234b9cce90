CREATE TABLE run (
    tenant         TEXT    NOT NULL,
    id             TEXT    NOT NULL,
    module         TEXT    NOT NULL,
    command        TEXT    NOT NULL,
    state          TEXT    NOT NULL CHECK (state IN ('running', 'done', 'failed')),
    code           TEXT,
    created_at_ms  INTEGER NOT NULL,
    finished_at_ms INTEGER,
    last_offset    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_unfinished ON run (created_at_ms, id) WHERE state = 'running';

CREATE TABLE event (
    tenant   TEXT    NOT NULL,
    run      TEXT    NOT NULL,
    "offset" INTEGER NOT NULL,
    kind     TEXT    NOT NULL,
    seq      INTEGER,
    body     TEXT    NOT NULL,
    PRIMARY KEY (tenant, run, "offset"),
    FOREIGN KEY (tenant, run) REFERENCES run (tenant, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

CREATE UNIQUE INDEX event_seq ON event (tenant, run, seq) WHERE seq IS NOT NULL;

PRAGMA user_version = 1;
