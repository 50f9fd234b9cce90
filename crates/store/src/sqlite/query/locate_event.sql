-- Chunks are counted from 1 as they come, so one stands no earlier than its number says, and later only by what is no
-- chunk. The first one there that is not before it is it, or there is none.
SELECT "offset", kind, seq, body FROM (
    SELECT "offset", kind, seq, body FROM event
    WHERE tenant = ?1 AND run = ?2 AND "offset" >= ?3 AND seq >= ?3
    ORDER BY "offset" LIMIT 1
)
WHERE seq = ?3
