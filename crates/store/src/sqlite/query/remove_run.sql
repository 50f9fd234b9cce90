DELETE FROM run WHERE tenant = ?1 AND id = ?2
