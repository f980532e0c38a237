//! Aborts, which ends a program by SIGABRT whatever it is doing.

struct Loud;

impl Drop for Loud {
    fn drop(&mut self) {
        println!("never printed");
    }
}

fn main() {
    let _loud = Loud;
    println!("before");
    std::process::abort();
}
