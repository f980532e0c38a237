//! A supervisor that the clean-up tests kill: prints `ready` when it has a sandbox, then executes programs of one
//! kind, or keeps instances in which processes run, until it is killed.
//!
//! `doomed-supervisor KIND|instance [PARALLEL] [ISOLATION]`

use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};

use sandbox::{
    CancelToken, Limits, Observer, ProcessLimits, Request, Sandbox, SandboxSpec, StreamKind,
    UsageSample,
};
use sandbox_tests::backend::named;
use sandbox_tests::instances::{BACKENDS, bash};

/// What its programs do, by the name of the kind.
const KINDS: &[(&str, &str)] = &[
    ("busy", "while :; do :; done"),
    ("sleeping", "sleep 60"),
    ("stopped", "kill -STOP $$"),
    ("forking", "while :; do (setsid sleep 60 &); (setsid sleep 0.01 &); done 2>&-"),
    ("deaf", "trap '' TERM INT HUP; sleep 60 & while :; do :; done"),
    ("writing", "while :; do head -c 1M /dev/zero > /tmp/x; echo x; done"),
    ("brief", "true"),
];

/// Two processes that nothing but the end of their sandbox ends, and one whose end is waited for.
const HIDDEN: &str = "(setsid sleep 600 &); (setsid bash -c 'trap \"\" TERM; sleep 600' &); \
    echo up; sleep 600";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_default();
    let parallel = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let isolation = arguments.next().unwrap_or_else(|| "native".to_owned());
    if kind == "instance" {
        keep_instances(&isolation, parallel);
        return ExitCode::FAILURE;
    }
    let Some((_, script)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        return ExitCode::from(2);
    };
    let backend = named(&isolation);
    let sandbox = (backend.choose)(Sandbox::builder()).build().expect("a sandbox can be started");
    say_ready();
    std::thread::scope(|scope| {
        for _ in 0..parallel {
            scope.spawn(|| {
                loop {
                    let request = Request::builder("bash").code(*script).build();
                    let request = request.expect("the request is a valid one");
                    // The result does not matter: this process is about to be killed.
                    let _ = sandbox.execute(request);
                }
            });
        }
    });
    ExitCode::FAILURE
}

#[expect(clippy::print_stdout, reason = "its killer waits for this line")]
fn say_ready() {
    println!("ready");
}

/// Keeps this many instances. Ready when all of their processes run.
fn keep_instances(isolation: &str, count: usize) {
    let (_, start) = BACKENDS.iter().find(|(name, _)| *name == isolation).expect("it has some");
    let backend = start();
    let (started, starts) = channel();
    std::thread::scope(|scope| {
        for _ in 0..count {
            let (backend, started) = (&backend, started.clone());
            scope.spawn(move || {
                let limits =
                    ProcessLimits { wall_time: None, cpu_time: None, output_bytes: 1 << 10 };
                let spec = SandboxSpec::new(Limits::run());
                let cancel = CancelToken::new();
                let instance = backend.create(spec, &cancel).expect("the instance is created");
                let unwaited = instance.start(bash("sleep 600"), limits);
                let unwaited = unwaited.expect("a process is started");
                let process = instance.start(bash(HIDDEN), limits).expect("a process is started");
                // The result does not matter: this process is about to be killed.
                let _ = process.wait(&mut Announce(started), &cancel);
                drop(unwaited);
            });
        }
        for _ in 0..count {
            starts.recv().expect("every instance reports");
        }
        say_ready();
    });
}

/// Reports each output.
struct Announce(Sender<()>);

impl Observer for Announce {
    fn output(&mut self, _: StreamKind, _: &[u8]) {
        let _ = self.0.send(());
    }
    fn usage(&mut self, _: UsageSample) {}
}
