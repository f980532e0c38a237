//! Errors as values with causes, panics that are caught, and the order of drops.

use std::error::Error;
use std::fmt;
use std::num::ParseIntError;
use std::panic;

#[derive(Debug)]
enum OrderError {
    NotANumber(ParseIntError),
    OutOfStock { wanted: u32 },
}

impl fmt::Display for OrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotANumber(_) => write!(f, "the order is no number"),
            Self::OutOfStock { wanted } => write!(f, "{wanted} wanted"),
        }
    }
}

impl Error for OrderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::NotANumber(cause) => Some(cause),
            Self::OutOfStock { .. } => None,
        }
    }
}

impl From<ParseIntError> for OrderError {
    fn from(cause: ParseIntError) -> Self {
        Self::NotANumber(cause)
    }
}

fn order(text: &str) -> Result<u32, OrderError> {
    let wanted = text.trim().parse()?;
    if wanted > 3 { Err(OrderError::OutOfStock { wanted }) } else { Ok(wanted) }
}

struct Loud(&'static str);

impl Drop for Loud {
    fn drop(&mut self) {
        println!("drop {}", self.0);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    for text in ["2", "5", "many", ""] {
        match order(text) {
            Ok(count) => println!("sold {count}"),
            Err(error) => println!("{error} {:?}", error.source().map(ToString::to_string)),
        }
    }
    println!("{:?}", ["1", "2", "x"].iter().map(|text| order(text)).collect::<Result<Vec<_>, _>>().is_err());
    panic::set_hook(Box::new(|info| println!("hook: line {}", info.location().map_or(0, |at| at.line()))));
    let caught = panic::catch_unwind(|| {
        let _first = Loud("first");
        let _second = Loud("second");
        let empty: Vec<i32> = Vec::new();
        empty[std::env::args().count() + 2]
    });
    let message = caught.unwrap_err().downcast::<String>().unwrap();
    println!("{message}");
    let _outer = Loud("outer");
    let boxed: Box<dyn Error> = "plain text".into();
    println!("{boxed} {:?}", None::<i32>.ok_or(boxed.to_string()));
    let wanted = order("3")?;
    println!("{}", 10_u32.checked_div(wanted - 3).map_or("no division".to_owned(), |result| result.to_string()));
    Ok(())
}
