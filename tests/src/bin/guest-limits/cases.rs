//! What a backend has to do under cgroups of version 2.

use std::collections::BTreeSet;
use std::time::Duration;

use sandbox::{Backend, ByteSize, CancelToken, Ending, Protection, TimeKind};
use sandbox_backends::native::NativeBackend;
use sandbox_linux::{ipc_limits, landlock};
use sandbox_tests::process::descendants;
use sandbox_tests::residue::Residue;
use sandbox_tests::wait::wait_until_empty;

use crate::kernel_memory;
use crate::outcome::Outcome;
use crate::plans::{
    Ear, SHELL, TEST_TIMEOUT, bash, expect_ending, limits, mib, own_path, own_payload, plan,
    possible, run_heard, text,
};

/// A name, and what has to hold.
type Case = (&'static str, fn(&NativeBackend) -> Outcome);

/// The cases, in the order in which they run.
pub(crate) const CASES: &[Case] = &[
    ("every_wall_and_limit_is_in_force", every_wall_and_limit_is_in_force),
    ("an_exit_code_is_told", an_exit_code_is_told),
    ("a_signal_is_told", a_signal_is_told),
    ("a_heap_that_grows_reaches_the_memory_limit", a_heap_that_grows_reaches_the_memory_limit),
    ("a_child_that_grows_reaches_the_memory_limit", a_child_that_grows_reaches_the_memory_limit),
    ("files_in_memory_reach_the_memory_limit", files_in_memory_reach_the_memory_limit),
    (
        "memory_below_the_limit_is_fine_and_is_the_peak",
        memory_below_the_limit_is_fine_and_is_the_peak,
    ),
    ("processes_are_limited_and_counted", processes_are_limited_and_counted),
    ("a_share_of_a_cpu_is_all_it_gets", a_share_of_a_cpu_is_all_it_gets),
    ("cpu_time_of_brief_children_adds_up", cpu_time_of_brief_children_adds_up),
    ("cpu_time_is_what_was_used", cpu_time_is_what_was_used),
    ("a_sleeper_runs_out_of_wall_time", a_sleeper_runs_out_of_wall_time),
    ("a_stopped_program_runs_out_of_wall_time", a_stopped_program_runs_out_of_wall_time),
    ("output_is_limited", output_is_limited),
    ("a_daemon_ends_with_the_program", a_daemon_ends_with_the_program),
    ("a_cancelled_crowd_is_killed_whole", a_cancelled_crowd_is_killed_whole),
    ("usage_is_sampled", usage_is_sampled),
    ("many_at_once_keep_apart", many_at_once_keep_apart),
    ("forty_executions_leave_nothing", forty_executions_leave_nothing),
    ("no_route_leads_past_the_memory_limit", kernel_memory::no_route_leads_past_the_memory_limit),
    (
        "without_a_filter_a_route_leads_past_the_memory_limit",
        kernel_memory::without_a_filter_a_route_leads_past_the_memory_limit,
    ),
];

fn every_wall_and_limit_is_in_force(backend: &NativeBackend) -> Outcome {
    // The guest's kernel is old: what it lacks is reported, and refuses nothing.
    let landlock = landlock::missing_from(landlock::version()).map(|part| part.protection);
    let ipc = (!ipc_limits::are_settable_inside()).then_some(Protection::IpcLimits);
    let lacks: BTreeSet<_> = landlock.chain(ipc).collect();
    ensure!(lacks.iter().all(|protection| protection.is_defense_in_depth()), "{lacks:?}");
    let missing = backend.capabilities().missing.iter();
    let missing: BTreeSet<_> = missing.map(|missing| missing.protection).collect();
    ensure!(missing == lacks, "{missing:?} are missing, and not {lacks:?}");
    let limits = possible(limits().with_cpu_time(TEST_TIMEOUT))?;
    let outcome = bash(backend, "true", limits)?;
    expect_ending(&outcome, Ending::Exited(0))?;
    let lacking: BTreeSet<_> = Protection::ALL
        .iter()
        .copied()
        .filter(|protection| !outcome.enforced.contains(protection))
        .collect();
    ensure!(lacking == lacks, "{lacking:?} are not in force, and not {lacks:?}");
    Ok(())
}

fn an_exit_code_is_told(backend: &NativeBackend) -> Outcome {
    expect_ending(&bash(backend, "exit 3", limits())?, Ending::Exited(3))
}

fn a_signal_is_told(backend: &NativeBackend) -> Outcome {
    expect_ending(&bash(backend, "kill -SEGV $$", limits())?, Ending::Signaled(11))
}

fn a_heap_that_grows_reaches_the_memory_limit(backend: &NativeBackend) -> Outcome {
    let limits = possible(limits().with_memory(mib(64)))?;
    let outcome = own_payload(backend, &["touch", "512"], limits)?;
    expect_ending(&outcome, Ending::OutOfMemory)?;
    let peak = outcome.usage.memory_peak_kb;
    ensure!((56 << 10..=64 << 10).contains(&peak), "the peak is {peak} KiB");
    Ok(())
}

fn a_child_that_grows_reaches_the_memory_limit(backend: &NativeBackend) -> Outcome {
    let limits = possible(limits().with_memory(mib(64)))?;
    let script = format!("{} payload touch 512; echo $?; exit 0", own_path()?);
    expect_ending(&bash(backend, &script, limits)?, Ending::OutOfMemory)
}

fn files_in_memory_reach_the_memory_limit(backend: &NativeBackend) -> Outcome {
    let limits = possible(limits().with_memory(mib(64)))?;
    let limits = possible(limits.with_disk(mib(256)))?;
    let script = "dd if=/dev/zero of=/tmp/big bs=1048576 count=200";
    expect_ending(&bash(backend, script, limits)?, Ending::OutOfMemory)
}

fn memory_below_the_limit_is_fine_and_is_the_peak(backend: &NativeBackend) -> Outcome {
    let limits = possible(limits().with_memory(mib(128)))?;
    let outcome = own_payload(backend, &["touch", "64"], limits)?;
    expect_ending(&outcome, Ending::Exited(0))?;
    let peak = outcome.usage.memory_peak_kb;
    ensure!((64 << 10..(64 + 16) << 10).contains(&peak), "the peak is {peak} KiB");
    Ok(())
}

fn processes_are_limited_and_counted(backend: &NativeBackend) -> Outcome {
    let limits = possible(limits().with_pids(8))?;
    let outcome = own_payload(backend, &["spawn", "100"], limits)?;
    expect_ending(&outcome, Ending::Exited(0))?;
    let made = text(&outcome.stdout);
    ensure!(made == "7", "it made {made} processes beside itself");
    let peak = outcome.usage.processes_peak;
    ensure!(peak == 8, "the most processes at once are told as {peak}");
    Ok(())
}

fn a_share_of_a_cpu_is_all_it_gets(backend: &NativeBackend) -> Outcome {
    let limits = possible(limits().with_cpus(0.25))?;
    let limits = possible(limits.with_wall_time(Duration::from_secs(3)))?;
    let outcome = bash(backend, "(while :; do :; done) & while :; do :; done", limits)?;
    expect_ending(&outcome, Ending::TimedOut(TimeKind::Wall))?;
    let figures = outcome.usage;
    let share = figures.cpu_time().as_secs_f64() / figures.wall_time.as_secs_f64();
    ensure!(share > 0.02 && share < 0.4, "it had {share} of a CPU where 0.25 was its share");
    Ok(())
}

fn cpu_time_of_brief_children_adds_up(backend: &NativeBackend) -> Outcome {
    let limits = possible(limits().with_cpu_time(Duration::from_millis(800)))?;
    let outcome = bash(backend, "while :; do busybox true; done", limits)?;
    expect_ending(&outcome, Ending::TimedOut(TimeKind::Cpu))?;
    let used = outcome.usage.cpu_time();
    let fits = used >= Duration::from_millis(790) && used < Duration::from_secs(5);
    ensure!(fits, "it used {used:?}");
    Ok(())
}

/// Against the shell's own measurement of itself and its children.
fn cpu_time_is_what_was_used(backend: &NativeBackend) -> Outcome {
    let script = "for ((i = 0; i < 40000; i++)); do :; done; (for ((i = 0; i < 40000; i++)); do :; done); times";
    let outcome = bash(backend, script, limits())?;
    expect_ending(&outcome, Ending::Exited(0))?;
    let measured: f64 = text(&outcome.stdout).split_whitespace().filter_map(seconds).sum();
    let told = outcome.usage.cpu_time().as_secs_f64();
    let fits = told >= measured * 0.95 - 0.02 && told <= measured * 1.5 + 0.5;
    ensure!(measured > 0.05 && fits, "the shell measured {measured} s, we tell {told} s");
    Ok(())
}

/// The shell writes `1m2.345s`.
fn seconds(word: &str) -> Option<f64> {
    let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
    Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
}

fn a_sleeper_runs_out_of_wall_time(backend: &NativeBackend) -> Outcome {
    at_the_wall(backend, "trap '' TERM; sleep 60")
}

fn a_stopped_program_runs_out_of_wall_time(backend: &NativeBackend) -> Outcome {
    at_the_wall(backend, "sleep 60 & kill -STOP $$")
}

fn at_the_wall(backend: &NativeBackend, script: &str) -> Outcome {
    let limits = possible(limits().with_wall_time(Duration::from_secs(1)))?;
    let outcome = bash(backend, script, limits)?;
    expect_ending(&outcome, Ending::TimedOut(TimeKind::Wall))?;
    let wall = outcome.usage.wall_time;
    let fits = wall >= Duration::from_millis(950) && wall < Duration::from_secs(6);
    ensure!(fits, "it ended after {wall:?}");
    Ok(())
}

fn output_is_limited(backend: &NativeBackend) -> Outcome {
    let limits = possible(limits().with_output(ByteSize::kib(64)))?;
    let outcome = bash(backend, "busybox yes & busybox yes >&2", limits)?;
    expect_ending(&outcome, Ending::TooMuchOutput)?;
    let kept = outcome.output.len();
    ensure!(kept == 64 << 10, "{kept} bytes were kept");
    Ok(())
}

fn a_daemon_ends_with_the_program(backend: &NativeBackend) -> Outcome {
    let outcome = bash(backend, "(setsid sleep 60 &); echo over", limits())?;
    expect_ending(&outcome, Ending::Exited(0))?;
    let wall = outcome.usage.wall_time;
    ensure!(wall < Duration::from_secs(20), "it ended after {wall:?}");
    no_sleepers()
}

fn a_cancelled_crowd_is_killed_whole(backend: &NativeBackend) -> Outcome {
    let script = "trap '' TERM; for i in 1 2 3 4 5; do (trap '' TERM; setsid sleep 60) & done; echo up; wait";
    let cancel = CancelToken::new();
    let mut ear = Ear { cancel_when_heard: Some(cancel.clone()), ..Ear::default() };
    let outcome = run_heard(backend, &plan(&[SHELL, "-c", script], limits()), &mut ear, &cancel)?;
    expect_ending(&outcome, Ending::Cancelled)?;
    no_sleepers()
}

fn no_sleepers() -> Outcome {
    let left = wait_until_empty(Duration::from_secs(30), || {
        let all = descendants().into_iter();
        all.filter(|process| ["sleep", "busybox"].contains(&process.name.as_str())).collect()
    });
    ensure!(left.is_empty(), "{left:?} are left");
    Ok(())
}

fn usage_is_sampled(backend: &NativeBackend) -> Outcome {
    let mut ear = Ear::default();
    let script = "for ((i = 0; i < 200000; i++)); do :; done; sleep 1";
    let mut plan = plan(&[SHELL, "-c", script], limits());
    plan.usage_interval = Some(Duration::from_millis(100));
    let outcome = run_heard(backend, &plan, &mut ear, &CancelToken::new())?;
    expect_ending(&outcome, Ending::Exited(0))?;
    let samples = ear.samples;
    ensure!(samples.len() >= 3, "{} samples", samples.len());
    ensure!(samples.is_sorted_by_key(|sample| sample.cpu_ms), "CPU time went back: {samples:?}");
    let largest = samples.iter().map(|sample| sample.memory_kb).max();
    ensure!(largest > Some(0), "no memory in {samples:?}");
    // The last one may have been taken when the shell had just ended.
    let before_the_end = &samples[..samples.len() - 1];
    let is_one = before_the_end.iter().all(|sample| sample.processes == 1);
    ensure!(is_one, "the shell is one process: {samples:?}");
    Ok(())
}

fn many_at_once_keep_apart(backend: &NativeBackend) -> Outcome {
    std::thread::scope(|scope| {
        let started: Vec<_> = (0..16)
            .map(|number| {
                scope.spawn(move || {
                    let script = format!("echo {number} > own; sleep 0.5; cat own");
                    let outcome = bash(backend, &script, limits())?;
                    let said = text(&outcome.stdout);
                    ensure!(said == number.to_string(), "{number} said {said}");
                    Ok(())
                })
            })
            .collect();
        started.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread died")?)
    })
}

fn forty_executions_leave_nothing(backend: &NativeBackend) -> Outcome {
    bash(backend, "true", limits())?;
    let before = Residue::count_at_rest();
    for _ in 0..40 {
        expect_ending(&bash(backend, "(setsid sleep 60 &)", limits())?, Ending::Exited(0))?;
    }
    before.wait_for_return()
}
