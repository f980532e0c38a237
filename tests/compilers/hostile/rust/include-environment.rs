// Takes the compiler's environment into the program, both as the kernel tells it and as the compiler
// does, and prints it.
fn main() {
    print!("{}", include_str!("/proc/self/environ").replace('\0', "\n"));
    println!("{:?}", option_env!("CARGO_MANIFEST_DIR"));
}
