//! Run some code and print its output.
//!
//! cargo run -p sandbox --example hello
//!
//! A language by name may follow: cargo run -p sandbox --example hello -- c

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use sandbox::{Request, Sandbox};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let language = std::env::args().nth(1).unwrap_or("python".to_owned());
    let sandbox = Sandbox::new()?;
    let hello = sandbox.runtimes().hello(&language).ok_or("this language is not known")?;

    let request = Request::builder(&language).code(&hello.code).build()?;
    let report = sandbox.execute(request)?;

    print!("{}", report.stdout);
    println!(
        "{} {}: {} in {} ms, {} KiB, behind {} protections",
        report.language,
        report.version,
        report.status,
        report.execution_time_ms,
        report.memory_used_kb,
        report.enforced.len()
    );
    Ok(())
}
