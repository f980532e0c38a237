// Loops while compiling, with the compiler's warning about that turned off.
#![allow(long_running_const_eval)]

const ENDLESS: u64 = {
    let mut value: u64 = 1;
    while value != 0 {
        value = value.wrapping_mul(3) | 1;
    }
    value
};

fn main() {
    println!("{ENDLESS}");
}
