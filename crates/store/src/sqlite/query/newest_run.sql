SELECT max(id) AS id FROM run
