fn main() {
    loop {
        println!("again and again");
    }
}
