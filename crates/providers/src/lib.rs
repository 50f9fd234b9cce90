//! Back-ends that answer canonical requests: HTTP vendors, scripted, local.
