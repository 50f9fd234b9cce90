-- Fenced: only the writer with the last offset can advance it.
UPDATE run SET last_offset = last_offset + ?4
WHERE tenant = ?1 AND id = ?2 AND last_offset = ?3 AND state = 'running'
