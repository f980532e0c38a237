//! What this program does inside the sandbox.

use std::process::{Command, ExitCode, Stdio};

/// `touch MEBIBYTES` uses memory; `spawn MOST` starts sleepers until it cannot, and says how many.
#[expect(clippy::print_stdout, reason = "the supervisor reads it")]
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    let number =
        |place: usize| arguments.get(place).and_then(|text| text.parse().ok()).unwrap_or(0);
    match arguments.first().map(String::as_str) {
        Some("touch") => {
            let mut kept = Vec::new();
            for mebibyte in 0..number(1) {
                kept.push(vec![u8::try_from(mebibyte % 255).unwrap_or(0) + 1; 1 << 20]);
            }
            println!("{}", std::hint::black_box(&kept).len());
        }
        Some("spawn") => {
            let sleeper = || {
                Command::new("/usr/bin/busybox").args(["sleep", "60"]).stdin(Stdio::null()).spawn()
            };
            let made = std::iter::repeat_with(sleeper).map_while(Result::ok).take(number(1));
            println!("{}", made.count());
        }
        _ => return ExitCode::from(2),
    }
    ExitCode::SUCCESS
}
