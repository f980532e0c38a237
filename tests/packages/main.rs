//! Packages: the egress proxy through which they are fetched, and environments built from the real indexes.

mod egress_proxy;
