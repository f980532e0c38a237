//! Read output while the program is still running.
//!
//! cargo run -p sandbox --example stream

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::time::Duration;

use sandbox::{Event, EventKind, Request, Sandbox};

const CODE: &str = "
import time
for number in range(5):
    print('step', number)
    time.sleep(0.2)
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sandbox = Sandbox::new()?;
    let request =
        Request::builder("python").code(CODE).usage_interval(Duration::from_millis(300)).build()?;

    let mut execution = sandbox.start(request)?;
    for event in execution.events() {
        show(&event);
    }
    println!("{}", execution.wait()?.status);
    Ok(())
}

fn show(event: &Event) {
    match &event.kind {
        EventKind::Stage(stage) => println!("{:>3} the {stage} stage begins", event.seq),
        EventKind::Output(_, bytes) => {
            let text = String::from_utf8_lossy(bytes);
            println!("{:>3} printed {:?}", event.seq, text);
        }
        EventKind::Usage(sample) => {
            println!("{:>3} uses {} KiB", event.seq, sample.memory_kb);
        }
        other => println!("{:>3} {}", event.seq, other.name()),
    }
}
