//! What the report says of a program that exceeds a limit.
//!
//! cargo run -p sandbox --example limits

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::time::Duration;

use sandbox::{ByteSize, Limits, Request, Sandbox};

/// The limit that each program exceeds, and its code.
const PROGRAMS: &[(&str, &str)] = &[
    ("time", "while True: pass"),
    ("memory", "hoard = []\nwhile True: hoard.append('x' * 1000000)"),
    ("output", "while True: print('x' * 1000)"),
    ("nothing", "print('content')"),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new()?;
    let limits = Limits::run()
        .with_wall_time(Duration::from_secs(2))?
        .with_memory(ByteSize::mib(64))?
        .with_output(ByteSize::kib(64))?;

    for (limit, code) in PROGRAMS {
        let request = Request::builder("python").code(*code).limits(limits.clone()).build()?;
        let report = sandbox.execute(request)?;
        println!("{limit}: {} ({})", report.status, report.error.as_deref().unwrap_or("no error"));
    }
    Ok(())
}
