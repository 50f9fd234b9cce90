-- Each tree costs every run. A chunk is found by its offset, which its number bounds from below, and what was left
-- running by its state, tenant by tenant.
DROP INDEX event_seq;
DROP INDEX run_unfinished;

PRAGMA user_version = 3;
