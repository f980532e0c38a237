// Each generic function calls the next one with a longer type, and the bound on that is raised.
#![recursion_limit = "100000"]
#![type_length_limit = "1000000000"]

struct Longer<T>(T);

fn next<T>(value: T, left: u32) -> u32 {
    if left == 0 { 0 } else { 1 + next(Longer(value), left - 1) }
}

fn main() {
    println!("{}", next(0, 3));
}
