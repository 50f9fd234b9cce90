//! The HTTP edge: modules over SSE and NDJSON, runs, resume.
