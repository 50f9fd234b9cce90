-- Only an open run without events.
UPDATE run SET state = ?3, code = ?4, finished_at_ms = ?5
WHERE tenant = ?1 AND id = ?2 AND state = 'running' AND last_offset = 0
