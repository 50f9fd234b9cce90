-- Only an open run: one that another writer has closed is accounted for.
UPDATE run SET state = ?3, code = ?4, finished_at_ms = ?5, last_offset = ?6, review_reason = ?7
WHERE tenant = ?1 AND id = ?2 AND state = 'running' AND last_offset = 0
