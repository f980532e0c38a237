// Never runs: what is brought out of the compile stage is not this program.
fn main() {}
