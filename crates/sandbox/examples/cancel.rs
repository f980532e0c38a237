//! Cancel a running program.
//!
//! cargo run -p sandbox --example cancel

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use sandbox::{EventKind, Request, Sandbox};

const CODE: &str = "
import itertools
for number in itertools.count():
    print(number)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new()?;

    // A token can be sent to another thread; `Execution::cancel` does the same on this one.
    let mut execution = sandbox.start(Request::builder("python").code(CODE).build()?)?;
    let token = execution.cancel_token();
    for event in execution.events() {
        if let EventKind::Output(..) = event.kind {
            token.cancel();
        }
    }
    println!("by token: {}", execution.wait()?.status);

    // Dropping the handle cancels too, and returns when the sandbox is destroyed.
    drop(sandbox.start(Request::builder("python").code(CODE).build()?)?);
    println!("by dropping: done");
    Ok(())
}
