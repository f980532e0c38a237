//! Give a program files, and collect the files it leaves.
//!
//! cargo run -p sandbox --example files

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use sandbox::{Request, Sandbox};

const CODE: &str = "
import csv, json, os
rows = list(csv.DictReader(open('data/people.csv')))
os.mkdir('out')
json.dump(rows, open('out/people.json', 'w'), indent=1)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new()?;
    let request = Request::builder("python")
        .code(CODE)
        .file("data/people.csv", "name,born\nAda,1815\nGrace,1906\n")
        .collect("out/*.json")
        .build()?;
    let report = sandbox.execute(request)?;

    for file in &report.output_files {
        println!("{} ({} bytes):\n{}", file.path, file.size, file.content);
    }
    for file in &report.skipped_files {
        println!("{} was not collected: {}", file.path, file.reason);
    }
    report.error.map_or(Ok(()), |error| Err(error.into()))
}
