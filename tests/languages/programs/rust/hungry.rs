fn main() {
    let mut kept = Vec::new();
    loop {
        kept.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}
