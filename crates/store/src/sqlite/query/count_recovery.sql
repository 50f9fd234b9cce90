UPDATE run SET recoveries = recoveries + 1
WHERE tenant = ?1 AND id = ?2 AND state = 'running'
RETURNING recoveries
