//! Memory of all processes together, files in memory included.

use sandbox::{Report, Request};

use crate::table::{bash, c, ended_saying, mib, millis, python};

table! {
    a_heap_without_end_reaches_the_limit:
        python("kept = []\nwhile True: kept.append(bytearray(1 << 20))")
            .limits(limits!(with_memory(mib(64))))
        => MemoryLimit, at_64_mib;
    a_c_program_that_touches_more_than_it_may_reaches_the_limit:
        c("#include <stdlib.h>\n#include <string.h>\n\
           int main(void) { for (;;) { char *p = malloc(1 << 20); if (p) memset(p, 1, 1 << 20); } }")
            .limits(limits!(with_memory(mib(64))))
        => MemoryLimit, at_64_mib;
    /// It has a limit of its own, of the same size, and aborts there if the kernel does not kill it first.
    a_runtime_that_gives_up_at_its_limit_has_reached_it:
        Request::builder("javascript")
            .code("const kept = []; for (;;) kept.push(new Array(100000).fill(kept.length))")
            .limits(limits!(with_memory(mib(128))))
        => MemoryLimit, ended_saying("memory limit of 128M");
    /// The parent goes on and ends well; the limit was reached all the same.
    a_child_that_is_killed_for_memory_is_told_though_its_parent_ends_well:
        python("import os\n\
                if os.fork() == 0:\n    kept = []\n    while True: kept.append(bytearray(1 << 20))\n\
                os.wait()\nprint('fine')")
            .limits(limits!(with_memory(mib(64))))
        => MemoryLimit, at_64_mib;
    children_that_are_modest_alone_reach_it_together:
        python("import os, time\n\
                for _ in range(8):\n    if os.fork() == 0:\n        kept = bytearray(24 << 20)\n        time.sleep(60)\n\
                os.wait()")
            .limits(limits!(with_memory(mib(96)), with_wall_time(millis(20_000))))
        => MemoryLimit, ended_saying("memory limit of 96M");
    files_in_tmp_count:
        python("with open('/tmp/big', 'wb') as file:\n    while True: file.write(bytes(1 << 20))")
            .limits(limits!(with_memory(mib(64)), with_disk(mib(512))))
        => MemoryLimit, at_64_mib;
    files_in_shared_memory_count:
        python("with open('/dev/shm/big', 'wb') as file:\n    while True: file.write(bytes(1 << 20))")
            .limits(limits!(with_memory(mib(64)), with_disk(mib(512))))
        => MemoryLimit, at_64_mib;
    files_without_a_name_count:
        python("import os\nfd = os.memfd_create('x')\nwhile True: os.write(fd, bytes(1 << 20))")
            .limits(limits!(with_memory(mib(64)), with_disk(mib(512))))
        => MemoryLimit, at_64_mib;
    memory_below_the_limit_is_nobodys_business:
        python("kept = bytearray(32 << 20)\nprint(len(kept))").limits(limits!(with_memory(mib(64))))
        => Completed, |report: &Report| assert_eq!(report.stdout, "33554432\n");
    /// Address space is not memory: runtimes reserve far more than they use.
    memory_that_is_never_touched_does_not_count:
        python("import mmap\nkept = mmap.mmap(-1, 4 << 30)\nprint(len(kept))")
            .limits(limits!(with_memory(mib(64))))
        => Completed, |report: &Report| assert_eq!(report.stdout, "4294967296\n");
    memory_that_was_given_back_does_not_add_up:
        python("for _ in range(20): bytearray(24 << 20)\nprint('done')").limits(limits!(with_memory(mib(64))))
        => Completed, |report: &Report| assert_eq!(report.stdout, "done\n");
    what_was_printed_before_the_limit_is_kept:
        bash("echo before; python3 -c 'x = bytearray(1 << 30)'").limits(limits!(with_memory(mib(64))))
        => MemoryLimit, |report: &Report| assert_eq!(report.stdout, "before\n");
}

fn at_64_mib(report: &Report) {
    ended_saying("memory limit of 64M")(report);
    let peak = report.memory_used_kb;
    assert!(peak <= 64 << 10, "{peak} KiB are more than the limit");
    assert!(peak >= 56 << 10, "{peak} KiB are far from the limit");
}
