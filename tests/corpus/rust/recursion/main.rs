//! Recursion on the main stack, on a larger one, through boxes, and through closures.

use std::collections::HashMap;
use std::hint::black_box;

fn depth(number: u64) -> u64 {
    let frame = black_box([number; 4]);
    if number == 0 { 0 } else { 1 + depth(frame[3] - 1) }
}

#[derive(Debug)]
enum Tree {
    Leaf,
    Node(Box<Tree>, i32, Box<Tree>),
}

impl Tree {
    fn insert(self, new: i32) -> Self {
        match self {
            Tree::Leaf => Tree::Node(Box::new(Tree::Leaf), new, Box::new(Tree::Leaf)),
            Tree::Node(left, value, right) if new < value => Tree::Node(Box::new(left.insert(new)), value, right),
            Tree::Node(left, value, right) => Tree::Node(left, value, Box::new(right.insert(new))),
        }
    }

    fn in_order(&self) -> Vec<i32> {
        match self {
            Tree::Leaf => Vec::new(),
            Tree::Node(left, value, right) => [left.in_order(), vec![*value], right.in_order()].concat(),
        }
    }
}

fn ways(coins: &[u32], amount: u32, known: &mut HashMap<(usize, u32), u64>) -> u64 {
    match (coins, amount) {
        (_, 0) => return 1,
        ([], _) => return 0,
        _ => {}
    }
    if let Some(&count) = known.get(&(coins.len(), amount)) {
        return count;
    }
    let with = if amount >= coins[0] { ways(coins, amount - coins[0], known) } else { 0 };
    let count = with + ways(&coins[1..], amount, known);
    known.insert((coins.len(), amount), count);
    count
}

fn main() {
    println!("{}", depth(20_000));
    let large = std::thread::Builder::new().stack_size(96 << 20).spawn(|| depth(400_000)).unwrap();
    println!("{}", large.join().unwrap());
    let tree = [5, 2, 8, 1, 9, 3].into_iter().fold(Tree::Leaf, Tree::insert);
    println!("{:?}", tree.in_order());
    println!("{}", ways(&[100, 50, 20, 10, 5, 2, 1], 100, &mut HashMap::new()));
    fn hanoi(disks: u32, moved: &mut impl FnMut(u32)) {
        if disks > 0 {
            hanoi(disks - 1, moved);
            moved(disks);
            hanoi(disks - 1, moved);
        }
    }
    let mut count = 0;
    hanoi(12, &mut |_| count += 1);
    println!("{count}");
}
