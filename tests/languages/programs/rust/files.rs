fn main() -> std::io::Result<()> {
    let sum: i64 = std::fs::read_to_string("in/numbers.txt")?.lines().map(|line| line.parse::<i64>().unwrap()).sum();
    std::fs::write("sum.txt", format!("{sum}\n"))
}
