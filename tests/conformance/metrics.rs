//! Each figure of a report against a measurement that does not come from us: what the program measured
//! itself, or an amount that is known beforehand.
//!
//! The machine may be busy. So lower bounds are close, because nothing used can go uncounted, and upper
//! bounds leave room for what starting a program costs.

use sandbox::{Report, StageUsage};

use crate::table::{bash, c, mib, millis, python};

table! {
    cpu_time_is_what_the_program_measured_children_included [CpuClock]:
        python("import os, resource, time\n\
                def burn(seconds):\n    while time.process_time() < seconds: pass\n\
                if os.fork() == 0:\n    burn(0.3)\n    os._exit(0)\n\
                burn(0.4)\nos.wait()\n\
                own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)\n\
                print(sum(1000 * (usage.ru_utime + usage.ru_stime) for usage in (own, children)))")
            .limits(limits!(with_wall_time(millis(60_000))))
        => Completed, |report: &Report| {
            let measured = number(report);
            assert!(measured >= 690.0, "the program measured {measured} ms");
            assert_between("cpu_time_ms", report.cpu_time_ms, measured * 0.97 - 10.0, measured * 1.2 + 150.0);
            let figures = figures(report);
            let parts = 1000.0 * (figures.cpu_user + figures.cpu_system).as_secs_f64();
            assert_between("user and system time together", parts, report.cpu_time_ms - 0.1, report.cpu_time_ms + 0.1);
        };
    /// It was never waited for, so no parent's counters include its time.
    cpu_time_of_a_child_nobody_waits_for_counts [CpuClock]:
        python("import os, signal, time\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\n\
                ended, told = os.pipe()\n\
                if os.fork() == 0:\n    while time.process_time() < 0.4: pass\n    os._exit(0)\n\
                os.close(told)\nos.read(ended, 1)")
            .limits(limits!(with_wall_time(millis(60_000))))
        => Completed, |report: &Report| assert_between("cpu_time_ms", report.cpu_time_ms, 385.0, 900.0);
    time_in_user_mode_is_told_apart [CpuClock]:
        c("#include <time.h>\nint main(void) { while (clock() < CLOCKS_PER_SEC / 2) for (volatile int i = 0; i < 1000000; i++); }")
            .limits(limits!(with_wall_time(millis(60_000))))
        => Completed, |report: &Report| {
            let figures = figures(report);
            assert!(figures.cpu_user >= 4 * figures.cpu_system, "{figures:?}");
            assert_between("cpu_time_ms", report.cpu_time_ms, 490.0, 1100.0);
        };
    time_in_the_kernel_is_told_apart [CpuClock]:
        c("#include <fcntl.h>\n#include <time.h>\n#include <unistd.h>\nstatic char b[1 << 20];\n\
           int main(void) { int f = open(\"/dev/zero\", O_RDONLY); while (clock() < CLOCKS_PER_SEC / 2) read(f, b, sizeof b); }")
            .limits(limits!(with_wall_time(millis(60_000))))
        => Completed, |report: &Report| {
            let figures = figures(report);
            assert!(figures.cpu_system >= 2 * figures.cpu_user, "{figures:?}");
        };
    sleeping_costs_no_cpu_time: bash("sleep 0.7") => Completed, |report: &Report| {
        assert!(report.cpu_time_ms < 200.0 && report.execution_time_ms >= 700.0);
    };

    memory_is_what_was_touched: c(&touch(64)) => Completed, |report: &Report| {
        let run = figures(report).memory_peak_kb;
        assert!((64 << 10..(64 + 16) << 10).contains(&run), "{run} KiB");
        assert_eq!(report.memory_used_mb, report.memory_used_kb.div_ceil(1024));
        assert!(report.memory_used_kb >= run);
    };
    /// The peak, not what is left at the end.
    memory_given_back_before_the_end_counts:
        python("kept = bytearray(64 << 20)\ndel kept\nprint('given back')") => Completed, |report: &Report| {
            let peak = figures(report).memory_peak_kb;
            assert!((64 << 10..(64 + 24) << 10).contains(&peak), "{peak} KiB");
        };
    memory_of_children_adds_up:
        python("import os\nready, told = os.pipe()\nstay, go = os.pipe()\n\
                for _ in range(4):\n    if os.fork() == 0:\n        os.close(go)\n        kept = bytearray(16 << 20)\n        os.write(told, b'x')\n        os.read(stay, 1)\n        os._exit(0)\n\
                for _ in range(4): os.read(ready, 1)\nos.close(go)")
        => Completed, |report: &Report| {
            let peak = figures(report).memory_peak_kb;
            assert!((64 << 10..(64 + 32) << 10).contains(&peak), "{peak} KiB");
        };
    files_in_memory_count_as_memory: bash("head -c 32M /dev/zero > file") => Completed, |report: &Report| {
        let peak = figures(report).memory_peak_kb;
        assert!((32 << 10..(32 + 16) << 10).contains(&peak), "{peak} KiB");
    };
    small_programs_have_small_figures: c("int main(void) { return 0; }") => Completed, |report: &Report| {
        let peak = figures(report).memory_peak_kb;
        assert!((1..8 << 10).contains(&peak), "{peak} KiB");
    };

    processes_are_counted_at_their_most [ProcessFigures]: python(&sleepers("os.fork() == 0", 5)) => Completed, |report: &Report| {
        assert_eq!(figures(report).processes_peak, 6);
    };
    threads_are_counted_like_processes [ProcessFigures]:
        python("import threading\nall_here = threading.Barrier(6)\n\
                threads = [threading.Thread(target=all_here.wait) for _ in range(5)]\n\
                for thread in threads: thread.start()\nall_here.wait()\nfor thread in threads: thread.join()")
        => Completed, |report: &Report| assert_eq!(figures(report).processes_peak, 6);
    one_process_is_one: c("int main(void) { return 0; }") => Completed, |report: &Report| {
        assert_eq!(figures(report).processes_peak, 1);
    };
    processes_one_after_the_other_do_not_add_up [ProcessFigures]: bash("for i in 1 2 3 4 5 6 7 8; do /bin/true; done")
        => Completed, |report: &Report| assert_eq!(figures(report).processes_peak, 2);

    bytes_written_and_read_are_counted [MovedBytes]: c(WRITE_THEN_READ) => Completed, |report: &Report| {
        let figures = figures(report);
        let (written, read) = (figures.io_write_bytes, figures.io_read_bytes);
        assert!((4 << 20..(4 << 20) + (64 << 10)).contains(&written), "{written} bytes written");
        assert!((4 << 20..(4 << 20) + (64 << 10)).contains(&read), "{read} bytes read");
    };
    bytes_of_children_are_counted [MovedBytes]: bash("head -c 3M /dev/zero | cat > file") => Completed, |report: &Report| {
        let figures = figures(report);
        // Through the pipe and into the file; from the device and out of the pipe.
        assert!((6 << 20..7 << 20).contains(&figures.io_write_bytes), "{figures:?}");
        assert!((6 << 20..7 << 20).contains(&figures.io_read_bytes), "{figures:?}");
    };
    bytes_printed_are_bytes_written [MovedBytes]: bash("head -c 100000 /dev/zero") => Completed, |report: &Report| {
        assert_eq!(report.stdout.len(), 100_000);
        let written = figures(report).io_write_bytes;
        assert!((100_000..110_000).contains(&written), "{written} bytes written");
    };
    bytes_of_standard_input_are_bytes_read [MovedBytes]: bash("cat > /dev/null").stdin(vec![b'x'; 2 << 20])
        => Completed, |report: &Report| {
            let read = figures(report).io_read_bytes;
            assert!((2 << 20..(2 << 20) + (256 << 10)).contains(&read), "{read} bytes read");
        };
    nothing_printed_is_hardly_anything_written: c("int main(void) { return 0; }") => Completed, |report: &Report| {
        assert!(figures(report).io_write_bytes < 4096);
    };

    wall_time_is_what_the_program_measured: c(MEASURED_SLEEP) => Completed, |report: &Report| {
        let measured = number(report);
        assert!(measured >= 500.0);
        assert_between("execution_time_ms", report.execution_time_ms, measured, measured * 1.5 + 2000.0);
        let stage = 1000.0 * figures(report).wall_time.as_secs_f64();
        assert_between("the stage's wall time", stage, report.execution_time_ms - 0.1, report.execution_time_ms + 0.1);
        assert_between("timings_ms.run", report.timings_ms.run, stage - 0.1, stage + 0.1);
    };
    /// A thousand files to place take time, and none of it is the program's.
    our_own_work_is_not_the_programs: many_files() => Completed, |report: &Report| {
        assert!(report.timings_ms.prepare > 0.0);
        assert!(report.cpu_time_ms < 400.0 && report.execution_time_ms < 2000.0);
    };
}

const WRITE_THEN_READ: &str = "
#include <fcntl.h>
#include <unistd.h>
static char block[1 << 16];
int main(void) {
    int file = open(\"/tmp/file\", O_RDWR | O_CREAT, 0600);
    for (int i = 0; i < 64; i++) if (write(file, block, sizeof block) != sizeof block) return 1;
    lseek(file, 0, SEEK_SET);
    for (int i = 0; i < 64; i++) if (read(file, block, sizeof block) != sizeof block) return 2;
}";

const MEASURED_SLEEP: &str = "
#include <stdio.h>
#include <time.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec * 1e3 + t.tv_nsec / 1e6; }
int main(void) {
    double begun = now();
    struct timespec half = {0, 500000000};
    nanosleep(&half, 0);
    printf(\"%f\", now() - begun);
}";

fn touch(mebibytes: u64) -> String {
    format!(
        "#include <stdlib.h>\nint main(void) {{ volatile char *p = malloc({mebibytes} << 20);\n\
         for (long i = 0; i < {mebibytes} << 20; i += 4096) p[i] = 1; }}"
    )
}

/// Children that wait, all at the same time, until their parent lets them go.
fn sleepers(is_child: &str, count: u32) -> String {
    format!(
        "import os\nready, told = os.pipe()\nstay, go = os.pipe()\n\
         for _ in range({count}):\n    if {is_child}:\n        os.close(go)\n        os.write(told, b'x')\n        os.read(stay, 1)\n        os._exit(0)\n\
         for _ in range({count}): os.read(ready, 1)\nos.close(go)\nfor _ in range({count}): os.wait()"
    )
}

fn many_files() -> sandbox::RequestBuilder {
    let files = (0..1000).fold(bash("ls | wc -l"), |request, number| {
        request.file(format!("file-{number}"), vec![b'x'; 1000])
    });
    files.limits(limits!(with_disk(mib(64))))
}

fn figures(report: &Report) -> StageUsage {
    report.stages.last().expect("the program ran").usage
}

fn number(report: &Report) -> f64 {
    let text = report.stdout.trim();
    text.parse().unwrap_or_else(|_| panic!("'{text}' is no number"))
}

fn assert_between(what: &str, value: f64, least: f64, most: f64) {
    assert!((least..=most).contains(&value), "{what} is {value}, not between {least} and {most}");
}
