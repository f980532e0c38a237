mod prices;

fn main() {
    println!("{}", money::format(prices::total(&[3, 4])));
}
