// Has the compiler compute an array of four gigabytes.
const GIANT: [u64; 1 << 29] = {
    let mut array = [0; 1 << 29];
    let mut index = 0;
    while index < array.len() {
        array[index] = index as u64;
        index += 4096;
    }
    array
};

static KEPT: [u64; 1 << 29] = GIANT;

fn main() {
    println!("{}", KEPT[std::env::args().count()]);
}
