//! When runtimes are started ahead, and for which programs.

use std::time::Duration;

use sandbox::{
    NetworkPolicy, Request, RequestBuilder, Sandbox, Stage, Start, WarmPoolStats, Workspaces,
};
use sandbox_tests::process::{adopt_orphans, wait_for_no_descendants};
use sandbox_tests::residue::{Residue, cgroups_of};
use sandbox_tests::user::as_ordinary_user;
use sandbox_tests::wait::wait_for;
use sandbox_tests::warm::{
    execute, execute_warm, overload_until_forked, prime, start_of_run, wait_until_full,
    warm_runtimes,
};

use crate::table::{mib, python};

pub(super) fn start() -> Sandbox {
    Sandbox::builder().build().expect("a sandbox can be started")
}

pub(super) fn hello() -> RequestBuilder {
    python("print('hello')")
}

/// The figures of the only kind there is.
pub(super) fn only_kind(sandbox: &Sandbox) -> WarmPoolStats {
    let warm = sandbox.pool().expect("this backend has a pool").warm;
    assert_eq!(warm.len(), 1, "{warm:?}");
    warm.into_iter().next().expect("there is one")
}

pub(super) fn says_hello(sandbox: &Sandbox, request: RequestBuilder) -> Start {
    let report = execute(sandbox, request);
    assert_eq!(report.stdout, "hello\n", "{:?} {}", report.error, report.stderr);
    start_of_run(&report)
}

/// Waits until this many Pythons are warm and the used ones are gone.
fn assert_waiting(count: usize) {
    let is_so = || (warm_runtimes("python3").len() == count).then_some(());
    assert!(wait_for(Duration::from_mins(1), is_so).is_some(), "{:?}", warm_runtimes("python3"));
}

#[test]
fn the_second_use_asks_for_runtimes_and_the_third_gets_one() {
    let sandbox = start();
    assert_eq!(sandbox.pool().unwrap().warm, Vec::new());
    assert_ne!(says_hello(&sandbox, hello()), Start::Warm);
    let once = only_kind(&sandbox);
    assert_eq!((once.name.as_str(), once.wanted, once.ready), ("python", 0, 0));
    assert!(warm_runtimes("python3").is_empty());
    assert_ne!(says_hello(&sandbox, hello()), Start::Warm);
    assert!(only_kind(&sandbox).wanted > 0);
    wait_until_full(&sandbox);
    let full = only_kind(&sandbox);
    assert_eq!((full.ready, full.hits, full.misses), (full.wanted, 0, 2));
    assert_waiting(full.ready);
    assert_eq!(says_hello(&sandbox, hello()), Start::Warm);
    assert_eq!(only_kind(&sandbox).hits, 1);
}

#[test]
fn no_runtime_is_started_ahead_if_warm_is_off() {
    let sandbox = Sandbox::builder().warm(false).build().unwrap();
    for _ in 0..4 {
        assert_ne!(says_hello(&sandbox, hello()), Start::Warm);
    }
    assert_eq!(sandbox.pool().unwrap().warm, Vec::new());
    assert!(warm_runtimes("python3").is_empty());
}

#[test]
fn warm_runtimes_stay_within_their_maximum() {
    let sandbox = Sandbox::builder().max_warm(1).build().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| [(); 3].map(|()| says_hello(&sandbox, hello())));
        }
    });
    wait_until_full(&sandbox);
    assert_eq!(only_kind(&sandbox).wanted, 1);
    assert_waiting(1);
}

#[test]
fn every_kind_of_request_gets_a_matching_runtime() {
    let sandbox = start();
    let show = "import resource, socket\nprint(resource.getrlimit(resource.RLIMIT_NOFILE), [line.split(':')[0] for line in open('/proc/self/net/dev')])\n\
                s = socket.socket()\ns.bind(('127.0.0.1', 0))\ns.listen()\n\
                print(socket.socket().connect_ex(s.getsockname()))";
    let few = || python(show).limits(limits!(with_open_files(40)));
    let local = || python(show).network(NetworkPolicy::Localhost);
    let shapes: [&dyn Fn() -> RequestBuilder; 3] = [&|| python(show), &few, &local];
    let cold = Sandbox::builder().warm(false).build().unwrap();
    for shape in shapes {
        let expected = execute(&cold, shape());
        prime(&sandbox, shape);
        let report = execute_warm(&sandbox, shape());
        assert_eq!((report.stdout, report.stderr), (expected.stdout, expected.stderr));
    }
    assert_eq!(sandbox.pool().unwrap().warm.len(), 3);
}

#[test]
fn the_limits_of_a_program_are_not_those_of_the_one_before() {
    let sandbox = start();
    let hungry =
        "a = bytearray(100 << 20)\nfor i in range(0, len(a), 4096): a[i] = 1\nprint('hello')";
    let small = || python(hungry).limits(limits!(with_memory(mib(64))));
    let large = || python(hungry).limits(limits!(with_memory(mib(256))));
    for _ in 0..2 {
        execute(&sandbox, small());
        says_hello(&sandbox, large());
    }
    wait_until_full(&sandbox);
    let report = execute_warm(&sandbox, small());
    assert_eq!(report.status, sandbox::Status::MemoryLimit);
    assert_eq!(says_hello(&sandbox, large()), Start::Warm);
}

#[test]
fn a_volume_and_a_workspace_are_there_for_a_language_whose_runtimes_wait() {
    let (shown, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    std::fs::write(shown.path().join("note"), "hello").unwrap();
    let workspaces = Workspaces::in_directory(&kept.path().join("workspaces"));
    let sandbox = Sandbox::builder().workspaces(workspaces).build().unwrap();
    prime(&sandbox, hello);
    let volume = || format!("{}:/data", shown.path().display()).parse().unwrap();
    let read = || python("print(open('/data/note').read())").volume(volume());
    for _ in 0..3 {
        assert_ne!(says_hello(&sandbox, read()), Start::Warm);
    }
    let count = "import os\nn = int(open('n').read()) if os.path.exists('n') else 0\n\
                 open('n', 'w').write(str(n + 1))\nprint(n)";
    for expected in 0..3 {
        let report = execute(&sandbox, python(count).workspace("mine"));
        assert_eq!(report.stdout, format!("{expected}\n"), "{}", report.stderr);
    }
    let report =
        execute_warm(&sandbox, python("import os\nprint(os.path.exists('/data'), os.listdir())"));
    assert_eq!(report.stdout, "False ['main.py']\n");
}

#[test]
fn concurrent_programs_each_get_a_sandbox_of_their_own() {
    const THREADS: usize = 8;
    let sandbox = start();
    let code =
        "import os, sys\nprint(sys.argv[1], os.environ['MINE'], input(), open('mine').read())";
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let sandbox = &sandbox;
            scope.spawn(move || {
                for round in 0..5 {
                    let mine = format!("{thread}-{round}");
                    let request = Request::builder("python")
                        .file("main.py", format!("# {mine}\n{code}"))
                        .file("mine", mine.clone())
                        .args([mine.clone()])
                        .env("MINE", &mine)
                        .stdin(mine.clone().into_bytes());
                    let report = execute(sandbox, request);
                    let expected = format!("{mine} {mine} {mine} {mine}\n");
                    assert_eq!(report.stdout, expected, "{:?} {}", report.error, report.stderr);
                }
            });
        }
    });
    let kind = only_kind(&sandbox);
    assert_eq!(kind.hits + kind.misses, 40);
    assert_eq!(kind.failure, None);
}

#[test]
fn a_compiler_that_waits_compiles_what_comes_and_what_waits_after_it_runs_it() {
    let sandbox = Sandbox::builder().without_compile_cache().build().unwrap();
    let code = "public class Main { public static void main(String[] a) { System.out.println(\"hello\"); } }";
    let request = || Request::builder("java").code(code);
    if sandbox.requirements(&request().build().unwrap()).is_err() {
        return sandbox_tests::skip::skip("warm java", "there is no JDK");
    }
    prime(&sandbox, request);
    let report = execute_warm(&sandbox, request());
    let starts: Vec<_> = report.stages.iter().map(|stage| (stage.name, stage.start)).collect();
    assert_eq!(starts, [(Stage::Compile, Start::Warm), (Stage::Run, Start::Warm)]);
    assert_eq!(report.stdout, "hello\n");
}

/// Its name makes it run alone: it counts what is on the whole host.
#[test]
fn runtimes_that_wait_leak_nothing_when_the_sandbox_goes() {
    adopt_orphans();
    let before = Residue::count();
    for _ in 0..3 {
        let sandbox = start();
        prime(&sandbox, hello);
        prime(&sandbox, || Request::builder("javascript").code("console.log('hello')"));
        overload_until_forked(&sandbox, || {
            says_hello(&sandbox, hello());
        });
        // While the pool is being refilled.
        says_hello(&sandbox, hello());
    }
    let left = wait_for_no_descendants(Duration::from_secs(30));
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(cgroups_of(std::process::id()), Vec::<std::path::PathBuf>::new());
    before.assert_returns("three sandboxes");
}

/// With other protections than root's, and perhaps no cgroup: warm or cold.
#[test]
fn an_ordinary_users_programs_run_whether_warm_or_not() {
    as_ordinary_user("warm::pool::an_ordinary_users_programs_run_whether_warm_or_not", || {
        let sandbox = start();
        let can_miss: Vec<_> =
            sandbox.capabilities().missing.iter().map(|missing| missing.protection).collect();
        let request = || {
            can_miss.iter().fold(hello(), |request, protection| request.allow_missing(*protection))
        };
        prime(&sandbox, request);
        assert_eq!(says_hello(&sandbox, request()), Start::Warm);
        std::thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| [(); 3].map(|()| says_hello(&sandbox, request())));
            }
        });
        // Whether this user has forks depends on the host; that programs run does not.
        assert_eq!(only_kind(&sandbox).hits + only_kind(&sandbox).misses, 21);
    });
}
