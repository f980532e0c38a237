// Takes the host's password hashes into the program, which prints them.
fn main() {
    println!("{:?}", include_bytes!("/etc/shadow"));
}
