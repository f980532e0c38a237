mod shop;

fn main() {
    println!("total {}", shop::prices::total(&[3, 4]));
}
