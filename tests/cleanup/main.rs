//! Nothing is left behind: not by a thousand executions, not by sixty-four at once, not by supervisors
//! that are killed at any moment.
//!
//! Every name here holds `cleanup` or `leak`: these tests count on the host being theirs alone, and the
//! configuration of the test runner sees to that by the name.

mod cleanup_after_kill;
mod cleanup_of_launcher;
mod leaks;
