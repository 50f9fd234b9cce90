-- Client, idempotency key, review and usage.
ALTER TABLE run ADD COLUMN client TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN once_key TEXT;
ALTER TABLE run ADD COLUMN once_fingerprint TEXT;
ALTER TABLE run ADD COLUMN review_reason TEXT;
ALTER TABLE run ADD COLUMN review_decision TEXT;
ALTER TABLE run ADD COLUMN review_by TEXT;
ALTER TABLE run ADD COLUMN review_comment TEXT;
ALTER TABLE run ADD COLUMN review_data TEXT;
ALTER TABLE run ADD COLUMN review_at_ms INTEGER;

CREATE UNIQUE INDEX run_once ON run (tenant, client, once_key) WHERE once_key IS NOT NULL;
CREATE INDEX run_state ON run (tenant, state, id);
CREATE INDEX run_review ON run (tenant, id) WHERE review_reason IS NOT NULL AND review_decision IS NULL;
CREATE INDEX run_finished ON run (finished_at_ms) WHERE state <> 'running';

-- Retained when its run is pruned: the money was spent.
CREATE TABLE usage (
    tenant           TEXT    NOT NULL,
    run              TEXT    NOT NULL,
    attempt          INTEGER NOT NULL,
    client           TEXT    NOT NULL,
    module           TEXT    NOT NULL,
    backend          TEXT,
    model            TEXT,
    outcome          TEXT    NOT NULL,
    input_tokens     INTEGER,
    output_tokens    INTEGER,
    estimated_tokens INTEGER,
    at_ms            INTEGER NOT NULL,
    PRIMARY KEY (tenant, run, attempt)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_time ON usage (at_ms);

CREATE TABLE api_key (
    id            TEXT    NOT NULL PRIMARY KEY,
    tenant        TEXT    NOT NULL,
    name          TEXT    NOT NULL,
    hash          TEXT    NOT NULL,
    scopes        TEXT    NOT NULL,
    modules       TEXT,
    models        TEXT,
    rate          TEXT,
    concurrency   INTEGER,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    revoked_at_ms INTEGER
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 2;
