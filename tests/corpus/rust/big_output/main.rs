//! Half a megabyte through a locked and buffered handle.

use std::io::{BufWriter, Write};

fn main() -> std::io::Result<()> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    let middle = "abcdefghij".repeat(4);
    for number in 0..10_000_u64 {
        writeln!(out, "{number:05} {middle} {:09}", number * number)?;
    }
    out.flush()
}
