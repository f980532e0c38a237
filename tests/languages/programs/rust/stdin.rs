fn main() {
    let sum: i64 = std::io::stdin().lines().map(|line| line.unwrap().parse::<i64>().unwrap()).sum();
    println!("{sum}");
}
