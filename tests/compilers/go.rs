//! Attacks on the go command and the compiler.

use crate::attack::nothing_more;

attacks! {
    a_file_outside_of_the_module_cannot_be_embedded:
        "go/embed-outside", Long => [CompileError], says!("invalid pattern syntax");
    a_module_of_the_host_cannot_take_the_place_of_another:
        "go/replace-canary", Long => [CompileError], says!("does not exist");
    no_c_compiler_is_started_with_flags_from_a_program:
        "go/cgo-command", Long => [CompileError], says!("there is no C compiler for Go programs");
    a_command_for_generating_code_is_not_run:
        "go/generate", Long => [Completed], |report| assert_eq!(report.stdout, "true\ntrue\n");
    a_newer_toolchain_is_not_downloaded:
        "go/toolchain-download", Long => [CompileError], says!("GOTOOLCHAIN=local");
    a_variable_of_gigabytes_is_refused:
        "go/giant-array.go", Long => [CompileError], says!("too large");
    a_constant_of_gigabytes_is_ended_by_a_limit:
        "go/constant-bomb.go", Short => [MemoryLimit, Timeout], nothing_more;
    types_that_double_forty_times_are_ended_by_a_limit:
        "go/doubling-types.go", Short => [MemoryLimit, Timeout], nothing_more;
    instances_without_end_are_refused:
        "go/instance-recursion.go", Long => [CompileError], says!("instantiation cycle");
}
