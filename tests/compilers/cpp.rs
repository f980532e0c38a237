//! Attacks on the C++ compiler: its templates, its evaluation of constants, its precompiled headers.

use sandbox::Status;

use crate::attack::{Attack, Patience, attempt, nothing_more};

attacks! {
    a_file_of_the_host_cannot_be_included:
        "cpp/include-canary.cpp", Long => [CompileError], says!("No such file");
    templates_that_need_ever_more_templates_are_ended_by_a_limit:
        "cpp/template-recursion.cpp", Short => [MemoryLimit, Timeout, OutputLimit], nothing_more;
    a_type_that_holds_itself_ends_at_the_compilers_own_bound:
        "cpp/endless-type.cpp", Long => [CompileError], says!("depth exceeds maximum");
    a_loop_in_a_constant_is_ended_by_a_limit:
        "cpp/constexpr-loop.cpp", Short => [Timeout, MemoryLimit], nothing_more;
}

/// A precompiled header is an image of the compiler's memory, and the compiler prefers it to the header.
#[test]
fn a_precompiled_header_of_the_users_own_is_not_taken_for_a_good_one() {
    let attack = Attack {
        name: "precompiled_nonsense",
        source: "cpp/precompiled-nonsense.cpp",
        patience: Patience::Long,
        statuses: &[Status::Completed, Status::CompileError],
        check: nothing_more,
    };
    let beginning = b"gpch".iter().chain(b"Cpp\x00014");
    let nonsense: Vec<u8> = beginning.copied().chain((0..=255).cycle().take(1 << 20)).collect();
    attempt(&attack, |host, request| {
        let request = host.add(request, attack.source).file("x.h", "int unused;\n");
        request.file("x.h.gch", nonsense.clone())
    });
}
