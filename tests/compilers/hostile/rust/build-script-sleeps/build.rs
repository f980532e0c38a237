// Never ends and takes no processor time, so that a limit of processor time alone would not see it.
// Before that it leaves a process that is no child of Cargo's.
fn main() {
    let _ = std::process::Command::new("setsid").args(["sleep", "1000"]).spawn();
    loop {
        std::thread::sleep(std::time::Duration::from_secs(1000));
    }
}
