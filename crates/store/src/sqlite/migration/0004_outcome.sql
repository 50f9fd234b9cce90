-- Attempts that completed were recorded as `won`.
UPDATE usage SET outcome = 'succeeded' WHERE outcome = 'won';

PRAGMA user_version = 4;
