//! Warm runtimes that die or fail to start: programs run all the same.

use std::path::Path;
use std::time::Duration;

use sandbox::{Request, RequestBuilder, Sandbox, Start};
use sandbox_tests::process::{Process, descendants};
use sandbox_tests::wait::wait_for;
use sandbox_tests::warm::{StartMethod, WarmRuntime, execute_warm, prime, warm_runtimes, zygotes};

use super::pool::{hello, only_kind, says_hello, start};

const TEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Kills every ready runtime, then runs programs: each must get another one.
fn survives_the_death_of_runtimes(
    sandbox: &Sandbox,
    name: &str,
    request: impl Fn() -> RequestBuilder,
) {
    let doomed = warm_runtimes(name);
    assert!(!doomed.is_empty(), "nothing called {name} waits");
    for runtime in &doomed {
        runtime.process.kill();
    }
    // Init reaps it only when the sandbox is used.
    let is_dead = |process: &Process| {
        let threads = std::fs::read_dir(format!("/proc/{}/task", process.id));
        process.state == 'Z' && threads.is_ok_and(|threads| threads.count() == 1)
    };
    let are_dead = || {
        let all = descendants();
        let now =
            |runtime: &WarmRuntime| all.iter().find(|process| process.id == runtime.process.id);
        doomed.iter().filter_map(now).all(is_dead).then_some(())
    };
    assert!(wait_for(TEST_TIMEOUT, are_dead).is_some(), "a process outlives SIGKILL");
    for _ in 0..3 {
        says_hello(sandbox, request());
    }
}

#[test]
fn a_warm_runtime_that_died_is_not_used() {
    let sandbox = start();
    prime(&sandbox, hello);
    survives_the_death_of_runtimes(&sandbox, "python3", hello);
}

#[test]
fn a_fork_of_a_zygote_that_died_is_not_used() {
    let sandbox = forking();
    prime(&sandbox, hello);
    survives_the_death_of_runtimes(&sandbox, "python3", hello);
}

#[test]
fn a_warm_node_that_died_is_not_used() {
    let sandbox = start();
    let request = || Request::builder("javascript").code("console.log('hello')");
    prime(&sandbox, request);
    survives_the_death_of_runtimes(&sandbox, "node", request);
}

#[test]
fn programs_run_after_the_zygote_has_died() {
    let sandbox = forking();
    prime(&sandbox, hello);
    let zygotes = zygotes("python3");
    assert_eq!(zygotes.len(), 1, "{zygotes:?}");
    zygotes[0].kill();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| [(); 3].map(|()| says_hello(&sandbox, hello())));
        }
    });
}

fn forking() -> Sandbox {
    StartMethod::Forked.only().build().expect("a sandbox can be started")
}

/// The Python recipe with another warm script.
fn recipes_with(warm: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    let recipe = place.path().join("python");
    std::fs::create_dir(&recipe).unwrap();
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtimes/python");
    for file in ["runtime.toml", "hello.py"] {
        std::fs::copy(original.join(file), recipe.join(file)).unwrap();
    }
    std::fs::write(recipe.join("warm.py"), warm).unwrap();
    place
}

fn runs_cold_and_reports(warm: &str, words: &str) {
    let place = recipes_with(warm);
    let builder = Sandbox::builder().runtimes_directory(place.path().to_owned());
    let sandbox = builder.build().unwrap();
    for _ in 0..2 {
        assert_ne!(says_hello(&sandbox, hello()), Start::Warm);
    }
    let failure = wait_for(TEST_TIMEOUT, || only_kind(&sandbox).failure);
    let failure = failure.expect("the figures say why none waits");
    assert!(failure.contains(words), "'{failure}' does not say '{words}'");
    for _ in 0..3 {
        assert_ne!(says_hello(&sandbox, hello()), Start::Warm);
    }
    assert_eq!(only_kind(&sandbox).ready, 0);
    assert!(warm_runtimes("python3").is_empty());
}

#[test]
fn a_runtime_with_an_unexpected_ready_message_is_not_used() {
    runs_cold_and_reports("import os\nos.write(1, b'nonsense')\nos.read(0, 1)", "nonsense");
}

#[test]
fn a_runtime_that_fails_to_start_is_not_used() {
    runs_cold_and_reports("import os\nos.write(2, b'oh no')\nos._exit(3)", "oh no");
}

#[test]
fn a_runtime_that_exits_before_it_is_ready_is_not_used() {
    runs_cold_and_reports("import os\nos._exit(0)", "ended");
}

#[test]
fn a_runtime_with_denied_calls_at_start_up_is_used() {
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../runtimes/python/warm.py");
    let text = std::fs::read_to_string(original).unwrap();
    let attempt = "import os\ntry: os.chroot('/')\nexcept OSError: pass\nprint = None\n";
    let place = recipes_with(&format!("{attempt}{text}"));
    let builder = Sandbox::builder().runtimes_directory(place.path().to_owned());
    let sandbox = builder.build().unwrap();
    prime(&sandbox, hello);
    let report = execute_warm(&sandbox, hello());
    assert_eq!(report.stdout, "hello\n");
    assert!(report.violations.is_empty(), "what the runtime tried is not the program's doing");
}
