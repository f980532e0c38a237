//! A large sort, a stable one, composed orders, a heap, sets and search.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Priority {
    Low,
    High(u8),
}

fn main() {
    let mut state = 12345_u32;
    let mut numbers: Vec<u32> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    })
    .take(300_000)
    .collect();
    let (sum, some) = (numbers.iter().map(|&n| u64::from(n)).sum::<u64>(), numbers[77]);
    numbers.sort_unstable();
    println!("{} {}", numbers.is_sorted(), numbers.iter().map(|&n| u64::from(n)).sum::<u64>() == sum);
    println!("{}", numbers.binary_search(&some).is_ok_and(|at| numbers[at] == some));

    let mut people = vec![("Ada", 36), ("Bo", 24), ("Cy", 36), ("Di", 24), ("Ed", 30)];
    people.sort_by_key(|&(_, age)| age);
    println!("{people:?}");
    people.sort_by(|left, right| right.1.cmp(&left.1).then_with(|| right.0.cmp(left.0)));
    println!("{people:?}");
    people.sort_by_key(|&(name, age)| (Reverse(age), name));
    println!("{people:?}");

    let mut heap = BinaryHeap::from([Priority::Low, Priority::High(3), Priority::High(9), Priority::Low]);
    heap.push(Priority::High(5));
    println!("{:?} {:?}", heap.pop(), heap.into_sorted_vec());
    let mut words = vec!["zoo", "Éclair", "apple", "Zebra"];
    words.sort();
    println!("{words:?}");
    words.sort_by_cached_key(|word| word.to_lowercase());
    println!("{words:?}");
    let mut groups: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for word in words {
        groups.entry(word.chars().count()).or_default().push(word);
    }
    println!("{groups:?} {:?}", groups.range(4..).next());
    let mut middle = [9, 1, 8, 2, 7];
    println!("{} {:?}", middle.select_nth_unstable(2).1, [1, 1, 2, 3].partition_point(|&n| n < 2));
}
