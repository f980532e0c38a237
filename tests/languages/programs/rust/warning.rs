fn main() {
    let forgotten_value = 42;
    println!("hello, world");
}
