fn main() {
    let number = 42;
    let text: String = number;
    println!("{text}");
}
