//! The standard library has no signals; the C library that it links has.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};

const SIGUSR1: i32 = 10;
const SIGTERM: i32 = 15;
const SIG_IGN: usize = 1;

unsafe extern "C" {
    safe fn signal(number: i32, handler: usize) -> usize;
    safe fn raise(number: i32) -> i32;
    safe fn alarm(seconds: u32) -> u32;
    safe fn pause() -> i32;
    safe fn kill(process: i32, number: i32) -> i32;
}

static SEEN: AtomicI32 = AtomicI32::new(0);

extern "C" fn remember(number: i32) {
    SEEN.fetch_add(number, Ordering::SeqCst);
}

fn main() {
    signal(SIGUSR1, remember as *const () as usize);
    println!("{} {}", raise(SIGUSR1), SEEN.load(Ordering::SeqCst));
    println!("{} {}", raise(SIGUSR1), SEEN.load(Ordering::SeqCst));

    signal(14, remember as *const () as usize);
    alarm(1);
    println!("{} {}", pause(), SEEN.load(Ordering::SeqCst));

    signal(SIGTERM, SIG_IGN);
    println!("{}", raise(SIGTERM));

    let script = "trap 'echo trapped; exit 9' USR2; echo ready; while :; do sleep 0.01; done";
    let mut child = Command::new("/bin/sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    println!("{}", lines.next().unwrap().unwrap());
    println!("{}", kill(i32::try_from(child.id()).unwrap(), 12));
    println!("{} {}", lines.next().unwrap().unwrap(), child.wait().unwrap());
}
