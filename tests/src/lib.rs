//! Helpers that several suites share.
