//! What programs print: kept whole up to the limit, in order, and as the bytes it is.

use sandbox::{ByteSize, Report, RequestBuilder};

use crate::table::{bash, ended_saying, lines, python};

const LIMIT: usize = 64 << 10;

table! {
    stdout_without_end_reaches_the_limit: within_limit(bash("yes")) => OutputLimit, |report: &Report| {
        at_the_limit(report);
        assert_eq!((report.stdout.len(), report.stderr.len()), (LIMIT, 0));
        assert!(report.stdout.starts_with("y\ny\n"));
        assert!(report.stdout_truncated && !report.stderr_truncated);
    };
    stderr_without_end_reaches_the_limit: within_limit(bash("yes >&2")) => OutputLimit, |report: &Report| {
        at_the_limit(report);
        assert_eq!((report.stdout.len(), report.stderr.len()), (0, LIMIT));
        assert!(report.stderr_truncated && !report.stdout_truncated);
    };
    both_streams_share_one_limit: within_limit(bash("yes out & yes err >&2")) => OutputLimit, |report: &Report| {
        at_the_limit(report);
        assert_eq!(report.stdout.len() + report.stderr.len(), LIMIT);
        assert!(report.stdout_truncated || report.stderr_truncated);
    };
    closing_one_stream_does_not_lift_the_limit_of_the_other:
        within_limit(bash("echo begun; exec >&-; yes >&2"))
        => OutputLimit, |report: &Report| {
            at_the_limit(report);
            assert_eq!(report.stdout, "begun\n");
            assert_eq!(report.stderr.len(), LIMIT - "begun\n".len());
        };
    a_child_without_end_reaches_the_limit_too: within_limit(bash("(setsid yes) & wait"))
        => OutputLimit, at_the_limit;
    /// The end comes from outside: the program may ignore every broken pipe.
    a_program_that_ignores_broken_pipes_is_ended:
        within_limit(python("import os\nwhile True:\n    try: os.write(1, b'x' * 4096)\n    except OSError: pass"))
        => OutputLimit, at_the_limit;
    the_first_bytes_are_the_ones_that_are_kept:
        within_limit(python("for number in range(100000): print(f'{number:07}')"))
        => OutputLimit, |report: &Report| {
            let expected = lines(0..LIMIT / 8, |number| format!("{number:07}\n"));
            assert_eq!(report.stdout, expected);
        };
    exactly_the_limit_is_not_too_much: within_limit(python("import os\nos.write(1, b'x' * 65536)"))
        => Completed, |report: &Report| {
            assert_eq!(report.stdout.len(), LIMIT);
            assert!(!report.stdout_truncated);
        };
    one_byte_over_the_limit_is_too_much: within_limit(python("import os\nos.write(1, b'x' * 65537)"))
        => OutputLimit, |report: &Report| {
            assert_eq!(report.stdout.len(), LIMIT);
            assert!(report.stdout_truncated);
        };
    nearly_a_mebibyte_is_kept_whole: python("print('é' * 500000, end='')") => Completed, |report: &Report| {
        assert_eq!(report.stdout.len(), 1_000_000);
        assert!(report.stdout.chars().all(|letter| letter == 'é'));
    };
    letters_of_every_script_are_kept: python("print('grüße, 世界, 🦀, \\u0000|')")
        => Completed, |report: &Report| assert_eq!(report.stdout, "grüße, 世界, 🦀, \0|\n");
    bytes_that_are_no_text_come_in_base64_too:
        python("import os\nos.write(1, b'\\x00\\xff\\xfe')\nos.write(2, b'\\xc3')")
        => Completed, |report: &Report| {
            assert_eq!(report.stdout_base64.as_deref(), Some("AP/+"));
            assert_eq!(report.stderr_base64.as_deref(), Some("ww=="));
            assert_eq!(report.stdout, "\0\u{fffd}\u{fffd}");
        };
    text_needs_no_base64: python("print('plain')") => Completed, |report: &Report| {
        assert_eq!((&report.stdout_base64, &report.stderr_base64), (&None, &None));
    };
    a_last_line_without_an_end_is_kept: bash("printf 'no newline'; printf 'none here' >&2")
        => Completed, |report: &Report| {
            assert_eq!((report.stdout.as_str(), report.stderr.as_str()), ("no newline", "none here"));
        };
    /// No pause between the writes: what is read in one go has to be put in order all the same.
    output_is_in_the_order_in_which_it_was_written [OutputOrder]:
        python("import os\nfor n in range(50):\n    os.write(1, b'o%d\\n' % n)\n    os.write(2, b'e%d\\n' % n)")
        => Completed, |report: &Report| {
            let expected = lines(0..50, |n| format!("o{n}\ne{n}\n"));
            assert_eq!(report.output, expected);
        };
    output_of_two_processes_in_turn_is_in_order:
        bash("for n in 1 2 3 4 5 6 7 8 9; do /bin/echo o$n; /bin/echo e$n >&2; done")
        => Completed, |report: &Report| {
            let expected = lines(1..10, |n| format!("o{n}\ne{n}\n"));
            assert_eq!(report.output, expected);
        };
    the_streams_can_be_opened_again_by_name:
        bash("echo out > /dev/stdout; echo err > /dev/stderr; echo again > /proc/self/fd/1")
        => Completed, |report: &Report| {
            assert_eq!((report.stdout.as_str(), report.stderr.as_str()), ("out\nagain\n", "err\n"));
        };
}

fn within_limit(request: RequestBuilder) -> RequestBuilder {
    request.limits(limits!(with_output(ByteSize::kib(64))))
}

fn at_the_limit(report: &Report) {
    ended_saying("64K of output")(report);
    assert_eq!(report.output.len(), LIMIT);
}
