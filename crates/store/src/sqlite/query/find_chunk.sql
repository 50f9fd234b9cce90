-- Chunks are numbered from 1, so the offset of a chunk is at least its number, and larger only by the number
-- of other events before it. The first chunk from that offset on either has the number, or no chunk has.
SELECT "offset", kind, seq, body FROM (
    SELECT "offset", kind, seq, body FROM event
    WHERE tenant = ?1 AND run = ?2 AND "offset" >= ?3 AND seq >= ?3
    ORDER BY "offset" LIMIT 1
)
WHERE seq = ?3
