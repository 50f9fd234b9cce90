-- Each index costs every run. A chunk is found by its offset, which has its number as a lower bound, and
-- unfinished runs by their state, tenant by tenant.
DROP INDEX event_seq;
DROP INDEX run_unfinished;

PRAGMA user_version = 3;
