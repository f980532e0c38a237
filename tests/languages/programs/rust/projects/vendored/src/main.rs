fn main() {
    println!("{}", money::format(7));
}
