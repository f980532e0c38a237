//! How do I end a program before its time is up?
//!
//! cargo run -p sandbox --example cancel

#![expect(clippy::print_stdout, reason = "an example shows what it found")]

use sandbox::{EventKind, Request, Sandbox};

const CODE: &str = "
import itertools
for number in itertools.count():
    print(number)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new()?;

    // A token can be given to another thread; `Execution::cancel` does the same from here.
    let mut execution = sandbox.start(Request::builder("python").code(CODE).build()?)?;
    let token = execution.cancel_token();
    for event in execution.events() {
        if let EventKind::Output(..) = event.kind {
            token.cancel();
        }
    }
    println!("by token: {}", execution.wait()?.status);

    // Dropping the handle does it too, and returns when the sandbox is gone.
    drop(sandbox.start(Request::builder("python").code(CODE).build()?)?);
    println!("by dropping: gone");
    Ok(())
}
