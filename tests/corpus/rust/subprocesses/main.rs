//! Children: a filter, exit codes, a pipeline, a death by signal, a program that is not there.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

fn main() -> std::io::Result<()> {
    let mut filter = Command::new("tr").args(["a-z", "A-Z"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    filter.stdin.take().expect("it was piped").write_all(b"shout")?;
    println!("{}", String::from_utf8_lossy(&filter.wait_with_output()?.stdout));

    let failed = Command::new("/bin/sh").args(["-c", "echo bye >&2; exit 7"]).output()?;
    println!("{:?} {:?}", failed.status.code(), String::from_utf8_lossy(&failed.stderr));

    let mut first = Command::new("seq").args(["1", "3000"]).stdout(Stdio::piped()).spawn()?;
    let second = Command::new("wc").arg("-l").stdin(first.stdout.take().expect("it was piped")).output()?;
    println!("{} {}", String::from_utf8_lossy(&second.stdout).trim(), first.wait()?);

    let mut slow = Command::new("sleep").arg("60").spawn()?;
    println!("{:?}", slow.try_wait()?);
    slow.kill()?;
    println!("{:?}", slow.wait()?.signal());

    let absent = Command::new("/no/such/program").spawn().unwrap_err();
    println!("{}", absent.kind() == ErrorKind::NotFound);
    let mut told = Command::new("/bin/sh");
    told.args(["-c", "echo $GREETING $0 in $PWD", "zero"]).env_clear().env("GREETING", "hello").current_dir("/usr");
    let mut words = String::new();
    told.stdout(Stdio::piped()).spawn()?.stdout.expect("it was piped").read_to_string(&mut words)?;
    print!("{words}");
    std::process::exit(0)
}
