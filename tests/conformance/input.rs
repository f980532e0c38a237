//! What a program is given: standard input, arguments, environment, a directory to start in.

use std::io::Read;
use std::sync::mpsc::{Receiver, channel};

use sandbox::{CancelToken, Event, EventKind, Report, Request, Stdin, StreamKind};
use sandbox_tests::backend::with_each_backend;

use crate::table::{bash, c, lines, python};

const HUGE: usize = 48 << 20;

table! {
    standard_input_arrives: bash("cat").stdin("line one\nline two") => Completed, |report: &Report| {
        assert_eq!(report.stdout, "line one\nline two");
    };
    standard_input_is_empty_unless_given: bash("read line; echo \"$? [$line]\"")
        => Completed, |report: &Report| assert_eq!(report.stdout, "1 []\n");
    standard_input_may_be_any_bytes: bash("od -An -tx1").stdin(b"\x00\xff\n".to_vec())
        => Completed, |report: &Report| assert_eq!(report.stdout.trim(), "00 ff 0a");
    a_compiled_program_gets_it_in_its_run_stage:
        c("#include <stdio.h>\nint main(void) { int c; while ((c = getchar()) != EOF) putchar(c); }").stdin("through")
        => Completed, |report: &Report| assert_eq!(report.stdout, "through");
    huge_standard_input_arrives_whole:
        python("import sys\ndata = sys.stdin.buffer\nsize = total = 0\n\
                while chunk := data.read(1 << 16):\n    size += len(chunk)\n    total += sum(chunk[::4096])\n\
                print(size)")
            .stdin(vec![7; HUGE])
        => Completed, |report: &Report| assert_eq!(report.stdout, format!("{HUGE}\n"));
    huge_standard_input_need_not_be_read: bash("echo done").stdin(vec![7; HUGE])
        => Completed, |report: &Report| assert_eq!(report.stdout, "done\n");
    a_stream_that_nobody_reads_holds_nobody_up: bash("echo done").stdin(Stdin::from_reader(Endless))
        => Completed, |report: &Report| assert_eq!(report.stdout, "done\n");
    a_stream_arrives_as_far_as_it_is_read: bash("head -c 1000000 | wc -c").stdin(Stdin::from_reader(Endless))
        => Completed, |report: &Report| assert_eq!(report.stdout.trim(), "1000000");
    standard_input_can_be_opened_by_name: bash("cat /dev/stdin").stdin("given")
        => Completed, |report: &Report| assert_eq!(report.stdout, "given");
    a_stream_can_be_opened_by_name: bash("head -c 3 /dev/stdin | od -An -tx1").stdin(Stdin::from_reader(Endless))
        => Completed, |report: &Report| assert_eq!(report.stdout.trim().len(), 8);
    an_empty_input_can_be_opened_by_name: bash("cat /dev/stdin; echo end")
        => Completed, |report: &Report| assert_eq!(report.stdout, "end\n");
    the_output_can_be_opened_by_name: bash("echo one > /dev/stdout; echo two > /dev/stderr")
        => Completed, |report: &Report| assert_eq!((&*report.stdout, &*report.stderr), ("one\n", "two\n"));
    standard_input_cannot_be_written: bash("echo x >&0 || echo refused").stdin("given")
        => Completed, |report: &Report| assert_eq!(report.stdout, "refused\n");

    arguments_arrive_as_they_are:
        python("import sys\nprint(sys.argv[1:])").args(["a b", "", "--flag", "ünï", "$HOME", "*", "\n", "-"])
        => Completed, |report: &Report| {
            assert_eq!(
                report.stdout,
                "['a b', '', '--flag', 'ünï', '$HOME', '*', '\\n', '-']\n"
            );
        };
    a_compiled_program_gets_its_arguments:
        c("#include <stdio.h>\nint main(int n, char **v) { printf(\"%d %s\", n, v[1]); }").args(["one"])
        => Completed, |report: &Report| assert_eq!(report.stdout, "2 one");
    /// Nothing of the caller's own environment is among it.
    the_environment_is_the_one_we_document: bash("exec env -u _ -u SHLVL -u PWD -u OLDPWD")
        => Completed, |report: &Report| {
            let mut lines: Vec<&str> = report.stdout.lines().collect();
            lines.sort_unstable();
            assert_eq!(lines, ["HOME=/tmp", "LANG=C.UTF-8", "PATH=/usr/local/bin:/usr/bin:/bin"]);
        };
    variables_are_added_and_replaced:
        bash("echo $GREETING $HOME").env("GREETING", "hé llo").env("HOME", "/work")
        => Completed, |report: &Report| assert_eq!(report.stdout, "hé llo /work\n");
    variables_of_the_loader_reach_the_program_and_nobody_else:
        bash("echo \"$LD_PRELOAD\" 2>/dev/null").env("LD_PRELOAD", "/work/no-such-library.so")
        => Completed, |report: &Report| assert_eq!(report.stdout, "/work/no-such-library.so\n");

    a_program_starts_in_the_work_directory: bash("pwd; ls") => Completed, |report: &Report| {
        assert_eq!(report.stdout, "/work\nmain.sh\n");
    };
    a_program_starts_where_it_is_told:
        bash("pwd; ls ..; cat note").file("sub/deep/note", "here").workdir("sub/deep")
        => Completed, |report: &Report| assert_eq!(report.stdout, "/work/sub/deep\ndeep\nhere");
    a_directory_to_start_in_is_made: bash("pwd; echo x > y && echo writable").workdir("new/one")
        => Completed, |report: &Report| assert_eq!(report.stdout, "/work/new/one\nwritable\n");
    a_compiled_program_starts_where_it_is_told:
        c("#include <stdio.h>\n#include <unistd.h>\nint main(void) { char b[99]; puts(getcwd(b, 99)); }").workdir("sub")
        => Completed, |report: &Report| assert_eq!(report.stdout, "/work/sub\n");
}

/// Gives bytes for ever.
struct Endless;

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}

/// Gives what is sent to it, as it is sent.
struct Sent(Receiver<Vec<u8>>);

impl Read for Sent {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let Ok(bytes) = self.0.recv() else {
            return Ok(0);
        };
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok(bytes.len())
    }
}

#[test]
fn a_conversation_goes_back_and_forth_while_the_program_runs() {
    with_each_backend(|sandbox| {
        let (sender, receiver) = channel();
        let request = Request::builder("bash")
            .code("for n in 1 2 3; do echo question $n; read answer; echo heard $answer; done; cat")
            .stdin(Stdin::from_reader(Sent(receiver)))
            .build()
            .unwrap();
        let mut heard = String::new();
        let mut asked = 0;
        let mut sender = Some(sender);
        let mut on_event = |event: &Event| {
            if let EventKind::Output(StreamKind::Stdout, bytes) = &event.kind {
                heard += &String::from_utf8_lossy(bytes);
            }
            // Each answer is given only once its question was heard.
            while asked < 3 && heard.contains(&format!("question {}", asked + 1)) {
                asked += 1;
                let answer = format!("answer-{asked}\n").into_bytes();
                sender.as_ref().unwrap().send(answer).unwrap();
            }
            if asked == 3 {
                sender = None;
            }
        };
        let report = sandbox.execute_with(request, &mut on_event, &CancelToken::new());
        let report = report.unwrap();
        let expected = lines(1..4, |n| format!("question {n}\nheard answer-{n}\n"));
        assert_eq!(report.stdout, expected, "{:?}", report.error);
        assert!(report.success);
    });
}
