fn main() {
    println!("before");
    panic!("out of stock");
}
