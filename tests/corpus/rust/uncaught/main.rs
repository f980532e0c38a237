//! A panic that nobody catches: what is alive is dropped on the way out.

struct Loud(&'static str);

impl Drop for Loud {
    fn drop(&mut self) {
        println!("drop {}", self.0);
    }
}

fn order(count: u32) -> Result<u32, String> {
    let _order = Loud("order");
    if count > 3 { Err(format!("{count} wanted")) } else { Ok(count) }
}

fn main() {
    let _main = Loud("main");
    println!("{:?}", order(2));
    let count = order(5).expect("the stock is large enough");
    println!("never printed {count}");
}
