-- The last events and the end in one step, fenced like any append.
UPDATE run
SET last_offset = last_offset + ?4, state = ?5, code = ?6, finished_at_ms = ?7, review_reason = ?8
WHERE tenant = ?1 AND id = ?2 AND last_offset = ?3 AND state = 'running'
