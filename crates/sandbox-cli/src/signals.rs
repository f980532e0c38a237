//! Turns SIGINT, SIGTERM and SIGHUP into messages.

use std::fs;
use std::io;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Sends `message()` for each stop signal from now on.
pub(crate) fn forward<T: Send + 'static>(
    sender: Sender<T>,
    message: impl Fn() -> T + Send + 'static,
) -> io::Result<()> {
    let mut signals = stop_signals()?;
    let listen = move || {
        for _ in signals.forever() {
            if sender.send(message()).is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("signals".into()).spawn(listen)?;
    Ok(())
}

/// Registers for the stop signals, whose default action is off from now on.
pub(crate) fn stop_signals() -> io::Result<Signals> {
    let mut wanted = vec![SIGINT, SIGTERM];
    // nohup ignores SIGHUP so that the command survives the terminal: keep it ignored.
    let ignored = fs::read_to_string("/proc/self/status").is_ok_and(|s| ignores(&s, SIGHUP));
    if !ignored {
        wanted.push(SIGHUP);
    }
    Signals::new(wanted)
}

/// Whether the process with this `/proc/PID/status` ignores a signal.
fn ignores(status: &str, signal: i32) -> bool {
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_mask() {
        let status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\n";
        assert!(ignores(status, SIGHUP));
        assert!(!ignores(status, SIGINT));
        assert!(!ignores("Name:\tx\n", SIGHUP));
    }
}
