-- A relayed call was a run with an empty module name, and its interruption an error with an empty body.
ALTER TABLE run ADD COLUMN kind TEXT NOT NULL DEFAULT 'module';
UPDATE run SET kind = 'relay' WHERE module = '';
UPDATE event SET kind = 'interrupted'
WHERE kind = 'error' AND body = ''
AND (tenant, run, "offset") IN (SELECT tenant, id, last_offset FROM run WHERE kind = 'relay' AND last_offset > 0);

PRAGMA user_version = 5;
