// A macro that calls itself with twice as many tokens, and a bound on recursion that does not bind.
#![recursion_limit = "1000000"]

macro_rules! double {
    ($($token:tt)*) => { double!($($token)* $($token)*) };
}

fn main() {
    double!(x);
}
