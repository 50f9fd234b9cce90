SELECT attempt, backend, model, outcome, input_tokens, output_tokens, estimated_tokens FROM usage
WHERE tenant = ?1 AND run = ?2
ORDER BY attempt
