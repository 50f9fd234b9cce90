-- A run that ends its server each time is not restarted without bound. A row that cannot be read is moved away.
ALTER TABLE run ADD COLUMN recoveries INTEGER NOT NULL DEFAULT 0;

CREATE TABLE damaged_run (
    tenant  TEXT NOT NULL,
    id      TEXT NOT NULL,
    reason  TEXT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 6;
