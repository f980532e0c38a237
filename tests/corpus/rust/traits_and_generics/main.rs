//! Traits, generics with constants, operators, iterators of our own, patterns, reference counts, macros.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::{self, Debug, Display};
use std::ops::{Add, Index, Mul};
use std::rc::{Rc, Weak};

trait Shape {
    const SIDES: u32;
    fn area(&self) -> f64;
    fn describe(&self) -> String {
        format!("{} sides, {:.1}", Self::SIDES, self.area())
    }
}
struct Square(f64);
impl Shape for Square {
    const SIDES: u32 = 4;
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Matrix<const N: usize>([[i64; N]; N]);
impl<const N: usize> Mul for Matrix<N> {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let cell = |row: usize, column: usize| (0..N).map(|k| self.0[row][k] * other.0[k][column]).sum();
        Self(std::array::from_fn(|row| std::array::from_fn(|column| cell(row, column))))
    }
}
impl<const N: usize> Index<(usize, usize)> for Matrix<N> {
    type Output = i64;
    fn index(&self, (row, column): (usize, usize)) -> &i64 {
        &self.0[row][column]
    }
}

struct Collatz(u64);
impl Iterator for Collatz {
    type Item = u64;
    fn next(&mut self) -> Option<u64> {
        (self.0 != 1).then(|| {
            self.0 = if self.0 % 2 == 0 { self.0 / 2 } else { 3 * self.0 + 1 };
            self.0
        })
    }
}

struct Parent {
    name: String,
    children: RefCell<Vec<Rc<Child>>>,
}
struct Child {
    parent: Weak<Parent>,
}

fn sum_all<T: Add<Output = T> + Default + Copy>(values: &[T]) -> T {
    values.iter().fold(T::default(), |sum, &value| sum + value)
}
fn longest<'a>(left: &'a str, right: &'a str) -> &'a str {
    if left.len() >= right.len() { left } else { right }
}
fn show(things: &[Box<dyn Display>]) -> String {
    things.iter().map(ToString::to_string).collect::<Vec<_>>().join("/")
}
macro_rules! map {
    ($($key:expr => $value:expr),* $(,)?) => { HashMap::from([$(($key, $value)),*]) };
}
struct Hidden<T>(T);
impl<T: Debug> Debug for Hidden<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hidden").field("inside", &self.0).finish_non_exhaustive()
    }
}

fn main() {
    println!("{}", Square(1.5).describe());
    let fibonacci = (0..9).fold(Matrix([[1, 0], [0, 1]]), |power, _| power * Matrix([[1, 1], [1, 0]]));
    println!("{} {fibonacci:?}", fibonacci[(0, 1)]);
    println!("{} {:?}", Collatz(27).count(), Collatz(6).filter(|n| n % 2 == 1).collect::<Vec<_>>());
    println!("{} {} {}", sum_all(&[1, 2, 3]), sum_all(&[0.5, 0.25]), longest("long", "longer"));
    println!("{} {:?}", show(&[Box::new(1), Box::new("two"), Box::new('3')]), Hidden(Some(1)));
    let parent = Rc::new(Parent { name: "root".into(), children: RefCell::default() });
    parent.children.borrow_mut().push(Rc::new(Child { parent: Rc::downgrade(&parent) }));
    let name = parent.children.borrow()[0].parent.upgrade().map(|parent| parent.name.clone());
    println!("{name:?} {} {}", Rc::strong_count(&parent), Rc::weak_count(&parent));
    let ages = map! { "Ada" => 36, "Bo" => 24 };
    match [1, 2, 3, 4].as_slice() {
        [first, .., last @ 4..=9] => println!("{first} {last} {}", ages["Bo"]),
        _ => println!("something else"),
    }
    let counter = { let mut count = 0; move || { count += 1; count } };
    let mut copies = (counter.clone(), counter);
    println!("{} {} {}", (copies.0)(), (copies.0)(), (copies.1)());
}
