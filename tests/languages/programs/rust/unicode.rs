fn main() -> std::io::Result<()> {
    let line = std::io::read_to_string(std::io::stdin())?;
    println!("grüße, 世界");
    print!("{line}");
    std::fs::write("ü-文.txt", line)
}
