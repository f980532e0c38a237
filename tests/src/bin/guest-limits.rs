//! The limit tests as one static program.
fn main() {}
