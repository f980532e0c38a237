//! Attacks on the Rust compiler and on Cargo, which runs code of a project while it builds it.

use sandbox::Report;

use crate::attack::nothing_more;

/// The compiler sees the environment of every sandboxed program, and nothing of the process that started it.
fn knows_its_own_variables(report: &Report) {
    assert!(report.stdout.contains("HOME=/tmp\n"), "{}", report.stdout);
    // Cargo gives this one to the test itself.
    assert!(!report.stdout.contains("CARGO_"), "{}", report.stdout);
}

/// None of the files is there.
fn found_nothing(report: &Report) {
    let found = |line: &&str| line.contains("Ok(\"");
    assert_eq!(report.stdout.lines().find(found), None);
    assert_eq!(report.stdout.matches("NotFound").count(), 5, "{}", report.stdout);
}

fn reached_nothing(report: &Report) {
    assert_eq!(report.stdout.matches("NetworkUnreachable").count(), 4, "{}", report.stdout);
}

fn spoilt_nothing(report: &Report) {
    assert_eq!(report.stdout, "looked at 20 places\n");
}

/// It grew up to the limit and no further.
fn filled_its_own_table(report: &Report) {
    let peak = report.stages[0].usage.processes_peak;
    assert!((20..=256).contains(&peak), "{peak} processes");
}

attacks! {
    a_file_of_the_host_cannot_be_included:
        "rust/include-canary.rs", Long => [CompileError], says!("No such file");
    the_password_file_of_the_host_cannot_be_included:
        "rust/include-shadow.rs", Long => [CompileError], says!("No such file");
    the_compilers_environment_holds_nothing_of_the_hosts:
        "rust/include-environment.rs", Long => [Completed], knows_its_own_variables;
    a_loop_in_a_constant_is_ended_by_a_limit:
        "rust/const-loop.rs", Short => [Timeout], nothing_more;
    a_constant_of_gigabytes_is_ended_by_a_limit:
        "rust/const-memory.rs", Short => [MemoryLimit, Timeout], nothing_more;
    a_macro_that_doubles_itself_is_ended_by_a_limit:
        "rust/macro-recursion.rs", Short => [MemoryLimit, Timeout, CompileError], nothing_more;
    a_type_that_grows_with_each_call_is_ended:
        "rust/type-recursion.rs", Short => [MemoryLimit, Timeout, CompileError], nothing_more;
    a_build_script_finds_no_file_of_the_host:
        "rust/build-script-reads", Long => [Completed], found_nothing;
    a_build_script_reaches_no_network_and_no_server_of_the_host:
        "rust/build-script-network", Long => [Completed], reached_nothing;
    a_build_script_can_write_to_no_toolchain_and_no_system_directory:
        "rust/build-script-writes", Long => [Completed], spoilt_nothing;
    a_link_in_the_place_of_the_program_is_not_followed:
        "rust/build-script-links", Long => [CompileError], |report| {
            let error = report.error.as_deref().unwrap();
            assert!(error.contains("symbolic link"), "{error}");
        };
    a_build_script_that_forks_without_end_fills_only_its_own_process_table:
        "rust/build-script-forks", Build => [Timeout, MemoryLimit], filled_its_own_table;
    a_build_script_that_sleeps_for_ever_is_ended_with_all_that_it_started:
        "rust/build-script-sleeps", Build => [Timeout], nothing_more;
    a_macro_that_runs_in_the_compiler_finds_nothing_and_leaves_nothing:
        "rust/macro-reads", Long => [Completed], |report| {
            assert_eq!(report.stdout.matches("NotFound").count(), 3, "{}", report.stdout);
            assert!(report.stdout.ends_with("connected: false\n"), "{}", report.stdout);
        };
}
