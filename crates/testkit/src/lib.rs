//! Conformance suites for the ports, scripted upstreams, throw-away servers.
