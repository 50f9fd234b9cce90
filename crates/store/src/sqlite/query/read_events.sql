SELECT "offset", kind, seq, body FROM event
WHERE tenant = ?1 AND run = ?2 AND "offset" > ?3
ORDER BY "offset" LIMIT ?4
