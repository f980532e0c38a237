//! How an attack on a compiler is carried out, and what holds after every one.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use sandbox::{
    ByteSize, Limits, Report, Request, RequestBuilder, Sandbox, SandboxBuilder, Stage, Status,
};
use sandbox_tests::backend::{execute, with_native_set_up};
use sandbox_tests::process::descendants;
use sandbox_tests::residue::{Residue, cgroups_of};
use sandbox_tests::wait::wait_for;

use crate::host::Host;

/// Rows: `name: source, patience => statuses, check;`. A source is a file or a directory below
/// `hostile/`, the first part of its path is the language. One of the statuses is expected, and the
/// check is a function of the report.
macro_rules! attacks {
    ($($name:ident: $source:expr, $patience:ident => [$($status:ident),+], $check:expr;)+) => {$(
        #[test]
        fn $name() {
            $crate::attack::carry_out(&$crate::attack::Attack {
                name: stringify!($name),
                source: $source,
                patience: $crate::attack::Patience::$patience,
                statuses: &[$(sandbox::Status::$status),+],
                check: $check,
            });
        }
    )+};
}

/// One attack on a compiler.
pub(crate) struct Attack {
    pub(crate) name: &'static str,
    pub(crate) source: &'static str,
    pub(crate) patience: Patience,
    pub(crate) statuses: &'static [Status],
    pub(crate) check: fn(&Report),
}

/// How long the compiler may work.
#[derive(Clone, Copy)]
pub(crate) enum Patience {
    /// As long as the slowest compiler on a busy machine needs: the attack ends by itself.
    Long,
    /// Not long, because the attack never ends by itself.
    Short,
    /// As long as Cargo needs to come to an attack that then never ends.
    Build,
}

impl Patience {
    fn limits(self) -> Limits {
        let (seconds, memory) = match self {
            Patience::Long => (40, ByteSize::mib(1024)),
            Patience::Short => (3, ByteSize::mib(384)),
            Patience::Build => (8, ByteSize::mib(1024)),
        };
        Limits::compile()
            .with_wall_time(Duration::from_secs(seconds))
            .and_then(|limits| limits.with_memory(memory))
            .and_then(|limits| limits.with_output(ByteSize::kib(256)))
            .unwrap()
    }
}

/// How much later than its limit a stage may be seen to end: to notice, and to kill all its processes.
const TO_END: Duration = Duration::from_secs(20);

/// Processes and cgroups are counted for the whole test program, so its tests take turns.
pub(crate) fn take_turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed has let go of what it had.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Carries out an attack that lies in `hostile/`.
pub(crate) fn carry_out(attack: &Attack) {
    attempt(attack, |host, request| host.add(request, attack.source));
}

/// Carries out an attack under every backend, with sources that `add` gives to the request.
pub(crate) fn attempt(attack: &Attack, add: impl Fn(&Host, RequestBuilder) -> RequestBuilder) {
    let _turn = take_turn();
    let (language, _) = attack.source.split_once('/').unwrap();
    // Processes are counted, and runtimes that wait for the next program would be among them.
    let without_waiting = |builder: SandboxBuilder| builder.warm(false);
    with_native_set_up(without_waiting, |sandbox| {
        let at_rest = count_at_rest(sandbox);
        let host = Host::new();
        let limits = attack.patience.limits();
        let request = add(&host, Request::builder(language).compile_limits(limits.clone()));
        let Some(report) = execute(attack.name, sandbox, request) else { return };
        assert!(attack.statuses.contains(&report.status), "{:?}", report.status);
        assert_well_formed(&report, &limits);
        assert!(!host.is_told_by(&report), "the report tells a secret of the host");
        assert!(!host.was_called(), "a server of the host was called");
        (attack.check)(&report);
        assert_greets(sandbox, language);
        assert_returns_to(at_rest);
    });
}

/// What holds for the report of every attack: it says what happened, and its own figures keep to the
/// limits that it names.
fn assert_well_formed(report: &Report, limits: &Limits) {
    assert_eq!(report.success, report.status == Status::Completed);
    assert_eq!(report.error.is_none(), report.success, "{:?}", report.error);
    let compile = report.stages.first().expect("every attack begins with a compile stage");
    assert_eq!(compile.name, Stage::Compile);
    if report.status != Status::Completed && report.status != Status::RuntimeError {
        assert_eq!((report.stage, report.stages.len()), (Stage::Compile, 1));
        // A compiler may end well and leave nothing that can be run.
        let left_nothing = compile.status == Status::Completed;
        assert!(compile.status == report.status || left_nothing, "{:?}", compile.status);
    }
    let took = compile.usage.wall_time;
    assert!(took <= limits.wall_time() + TO_END, "the compile stage took {took:?}");
    let timed_out = report.status == Status::Timeout;
    assert!(!timed_out || took >= limits.wall_time(), "it was ended early, after {took:?}");
    let peak = compile.usage.memory_peak_kb * 1024;
    assert!(peak <= limits.memory().as_u64(), "the compile stage took {peak} bytes");
    let printed = report.stdout.len() + report.stderr.len();
    let bound = limits.output().as_u64() + 4096;
    assert!(printed as u64 <= bound, "{printed} bytes of messages");
    let json = serde_json::to_string(report).unwrap();
    let back: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(back["status"], report.status.to_string());
}

/// A harmless program of the language compiles and runs as if nothing had happened.
pub(crate) fn assert_greets(sandbox: &Sandbox, language: &str) {
    let hello = sandbox.runtimes().hello(language).expect("every recipe has a hello program");
    let request = Request::builder(language).code(hello.code.as_str());
    let report = execute("hello", sandbox, request).expect("the language was there just now");
    assert_eq!((report.status, report.stdout), (Status::Completed, hello.expected.clone()));
}

/// Processes below this one, and its cgroups.
type Count = (usize, usize);

fn count() -> Count {
    (descendants().len(), cgroups_of(std::process::id()).len())
}

/// What there is when a sandbox has started and nothing happens. Waiting for that takes time, and it is
/// the same for every sandbox of one kind.
fn count_at_rest(sandbox: &Sandbox) -> Count {
    static AT_REST: OnceLock<Count> = OnceLock::new();
    *AT_REST.get_or_init(|| {
        let is_full = || sandbox.pool().is_some_and(|pool| pool.ready >= pool.wanted);
        let full = wait_for(Duration::from_secs(30), || is_full().then_some(()));
        full.expect("all sandboxes that are prepared ahead are ready");
        let residue = Residue::count_at_rest();
        (residue.processes, residue.cgroups)
    })
}

fn assert_returns_to(at_rest: Count) {
    let returned = wait_for(Duration::from_secs(30), || (count() == at_rest).then_some(()));
    assert!(returned.is_some(), "{:?} instead of {at_rest:?}: {:#?}", count(), descendants());
}

/// A check for rows that say all with their status.
pub(crate) fn nothing_more(_: &Report) {}

/// The compiler's words hold these.
macro_rules! says {
    ($words:expr) => {
        |report| assert!(report.output.contains($words), "{}", report.output)
    };
}
