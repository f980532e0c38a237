//! Packages: the gate through which they are fetched, and what is built from the real indexes.

mod gate;
