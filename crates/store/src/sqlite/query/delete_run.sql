-- Only a run without events.
DELETE FROM run WHERE tenant = ?1 AND id = ?2 AND state = 'running' AND last_offset = 0
