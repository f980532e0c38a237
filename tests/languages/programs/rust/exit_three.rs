fn main() {
    println!("before");
    std::process::exit(3);
}
