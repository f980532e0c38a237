//! Attacks on the C compiler, its preprocessor and its assembler.

use sandbox::Report;

use crate::attack::nothing_more;

/// Inside there is no such file: not even its name is known.
fn is_not_there(report: &Report) {
    assert!(report.stderr.contains("No such file"), "{}", report.stderr);
}

/// The compiler prints only the user names that every sandbox has.
fn tells_the_users_inside(report: &Report) {
    assert!(report.stderr.contains("root:x:0:0:root:/:/usr/sbin/nologin"), "{}", report.stderr);
    let users = std::fs::read_to_string("/etc/passwd").unwrap();
    let told = users.lines().find(|line| report.stderr.contains(line));
    assert_eq!(told, None);
}

attacks! {
    a_file_of_the_host_cannot_be_included:
        "c/include-canary.c", Long => [CompileError], is_not_there;
    the_password_file_of_the_host_cannot_be_included:
        "c/include-shadow.c", Long => [CompileError], is_not_there;
    climbing_out_of_the_work_directory_leads_to_the_sandboxs_own_root:
        "c/include-upwards.c", Long => [CompileError], tells_the_users_inside;
    the_first_process_of_the_sandbox_cannot_be_included:
        "c/include-first-process.c", Long => [CompileError], is_not_there;
    the_assembler_cannot_take_a_file_of_the_host_into_the_program:
        "c/incbin-canary.c", Long => [CompileError], says!("file not found");
    the_compilers_standard_input_is_empty:
        "c/include-standard-input.c", Long => [Completed], nothing_more;
    a_device_that_never_ends_is_ended_by_a_limit:
        "c/include-endless-device.c", Short => [MemoryLimit, Timeout], nothing_more;
    macros_that_expand_to_a_billion_tokens_are_ended_by_a_limit:
        "c/macro-bomb.c", Short => [MemoryLimit, Timeout], nothing_more;
    a_source_that_includes_itself_is_ended_by_a_limit:
        "c/include-itself.c", Short => [Timeout, MemoryLimit, OutputLimit], nothing_more;
    an_object_file_of_gigabytes_does_not_fit:
        "c/giant-array.c", Long => [CompileError, MemoryLimit], nothing_more;
    a_flood_of_messages_is_cut_off:
        "c/diagnostic-flood.c", Long => [OutputLimit], |report| {
            assert!(report.stderr.contains("undeclared"), "what came before the limit is kept");
        };
}
