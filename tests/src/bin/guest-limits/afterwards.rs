//! What must hold after the supervisor has exited or was killed.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use sandbox_backends::native::{NativeBackend, NativeOptions};
use sandbox_tests::process::{adopt_orphans, wait_for_no_descendants};
use sandbox_tests::residue::cgroups_of;
use sandbox_tests::wait::wait_until_empty;

use crate::outcome::Outcome;
use crate::plans::{bash, limits};

const SOON: Duration = Duration::from_secs(20);

/// A name, and what has to hold.
type Case = (&'static str, fn() -> Outcome);

pub(crate) const CASES: &[Case] = &[
    ("nothing_is_left_by_a_supervisor_that_ended", nothing_is_left_by_one_that_ended),
    ("nothing_is_left_by_a_supervisor_that_was_killed", nothing_is_left_by_one_that_was_killed),
];

fn nothing_is_left_by_one_that_ended() -> Outcome {
    nothing_is_left_of(std::process::id())
}

fn nothing_is_left_by_one_that_was_killed() -> Outcome {
    adopt_orphans();
    let failed = |error: std::io::Error| error.to_string();
    for _ in 0..5 {
        let mut doomed = Command::new("/proc/self/exe")
            .arg("doomed")
            .stdout(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let output = doomed.stdout.take().ok_or("its output is no pipe")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).map_err(failed)?;
        ensure!(line == "ready\n", "it said '{line}'");
        doomed.kill().map_err(failed)?;
        doomed.wait().map_err(failed)?;
        nothing_is_left_of(doomed.id())?;
    }
    Ok(())
}

fn nothing_is_left_of(supervisor: u32) -> Outcome {
    let processes = wait_for_no_descendants(SOON);
    ensure!(processes.is_empty(), "{processes:?} are left");
    let cgroups = wait_until_empty(SOON, || cgroups_of(supervisor));
    ensure!(cgroups.is_empty(), "{cgroups:?} are left");
    Ok(())
}

/// A supervisor of two programs without end.
#[expect(clippy::print_stdout, reason = "its killer waits for this line")]
pub(crate) fn wait_to_be_killed() -> ExitCode {
    let Ok(backend) = NativeBackend::start(&NativeOptions::default()) else {
        return ExitCode::FAILURE;
    };
    std::thread::scope(|scope| {
        for script in ["while :; do :; done", "(setsid sleep 60 &); sleep 60"] {
            let backend = &backend;
            scope.spawn(move || bash(backend, script, limits()));
        }
        println!("ready");
    });
    ExitCode::FAILURE
}
