SELECT "offset", kind, seq, body FROM event
WHERE tenant = ?1 AND run = ?2 AND seq = ?3
