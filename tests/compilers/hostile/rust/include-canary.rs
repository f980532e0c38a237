// Takes a file of the host into the program, which prints it. CANARY is replaced by the path.
fn main() {
    print!("{}", include_str!("CANARY"));
}
