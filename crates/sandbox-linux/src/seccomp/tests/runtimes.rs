//! Real programs under the filter: they must work, and nothing they do may count as a violation.

use std::path::Path;
use std::process::{Command, Output};

use super::super::{DeniedAction, Listener, install};
use super::kernel::{Violations, program, supervised};

/// Runs a command under the filter, with a supervisor that counts.
fn run_supervised(command: &mut Command) -> (Output, Violations) {
    let (output, violations) = supervised(|| command.output());
    (output.expect("the program starts"), violations)
}

/// Checks that a command prints `expected` and succeeds, both with a supervisor, who must have
/// nothing to report, and with errnos from the kernel alone.
fn check(name: &str, arguments: &[&str], expected: &str) {
    if !Path::new(name).exists() {
        #[expect(clippy::print_stderr, reason = "a skipped test must be seen")]
        {
            eprintln!("SKIPPED: {name} is not installed");
        }
        return;
    }
    let mut command = Command::new(name);
    command.args(arguments).env("LC_ALL", "C.UTF-8");
    let (output, violations) = run_supervised(&mut command);
    expect_output(name, &output, expected);
    assert_eq!(violations, Violations::new(), "{name} {arguments:?}");

    let output = run_confined(&mut command);
    expect_output(name, &output, expected);
}

fn run_confined(command: &mut Command) -> Output {
    use std::os::unix::process::CommandExt;

    let program = program(DeniedAction::Errno);
    let confine = move || {
        rustix::thread::set_no_new_privs(true)?;
        install(&program.instructions, Listener::Unwanted)?;
        Ok(())
    };
    // SAFETY: the closure runs between fork and exec; it makes two system calls on memory that
    // was prepared before, and neither allocates nor locks.
    unsafe { command.pre_exec(confine) }.output().expect("the program starts")
}

fn expect_output(name: &str, output: &Output, expected: &str) {
    let printed = String::from_utf8_lossy(&output.stdout);
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{printed}\n{complaints}", output.status);
    assert_eq!(printed.trim_end(), expected, "{name}: {complaints}");
}

#[test]
fn bash_runs_pipes_and_subshells() {
    check("/usr/bin/bash", &["-c", "x=$(echo a b | wc -w); (exit 3); echo $x $?; sync"], "2 3");
}

#[test]
fn python_runs_threads_subprocesses_and_loopback_sockets() {
    let code = r#"
import asyncio, multiprocessing, os, shutil, socket, subprocess, sys, tempfile, threading
thread = threading.Thread(target=lambda: print("thread", flush=True)); thread.start(); thread.join()
print(subprocess.run(["/bin/echo", "child"], capture_output=True, text=True).stdout.strip(), flush=True)
with multiprocessing.get_context("fork").Pool(2) as pool: print(sum(pool.map(abs, [-1, -2])), flush=True)
with multiprocessing.get_context("spawn").Pool(1) as pool: print(pool.apply(abs, (-4,)), flush=True)
async def echo():
    async def serve(reader, writer):
        writer.write(await reader.readline()); await writer.drain(); writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    writer.write(b"loopback\n"); print((await reader.readline()).decode().strip(), flush=True)
    writer.close(); server.close()
    child = await asyncio.create_subprocess_exec("/bin/true"); print(await child.wait(), flush=True)
asyncio.run(echo())
socket.getaddrinfo("localhost", 80); socket.if_nametoindex("lo"); os.sched_getaffinity(0); os.urandom(4)
with tempfile.TemporaryDirectory() as folder:
    os.mkfifo(folder + "/fifo"); open(folder + "/a", "w").write("x"); shutil.copy2(folder + "/a", folder + "/b")
print("done")
"#;
    let expected = "thread\nchild\n3\n4\nloopback\n0\ndone";
    check("/usr/bin/python3", &["-c", code], expected);
}

#[test]
fn node_runs_its_event_loop_workers_and_children() {
    let code = r#"
const { Worker } = require("worker_threads"), net = require("net"), fs = require("fs");
const { execFileSync } = require("child_process");
console.log(execFileSync("/bin/echo", ["child"]).toString().trim());
fs.writeFileSync("/dev/null", "x"); fs.promises.readFile("/etc/hostname").catch(() => {});
new Worker("require('worker_threads').parentPort.postMessage('worker')", { eval: true })
  .on("message", text => { console.log(text);
    const server = net.createServer(socket => socket.end("loopback")).listen(0, "127.0.0.1", () =>
      net.connect(server.address().port, "127.0.0.1")
        .on("data", data => console.log(data.toString())).on("close", () => server.close()));
  });
"#;
    check("/usr/bin/node", &["-e", code], "child\nworker\nloopback");
}

#[test]
fn perl_and_ruby_and_php_and_lua_run() {
    check("/usr/bin/perl", &["-e", "print `echo child`"], "child");
    let threads = "puts Thread.new { `echo child` }.value";
    check("/usr/bin/ruby", &["-e", threads], "child");
    check("/usr/bin/php", &["-r", "echo shell_exec('echo child');"], "child");
    check("/usr/bin/lua5.4", &["-e", "print(io.popen('echo child'):read())"], "child");
    check("/usr/bin/sbcl", &["--noinform", "--eval", "(progn (princ 42) (terpri) (exit))"], "42");
}

#[test]
fn a_c_compiler_builds_a_program_that_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let source = "#include <stdio.h>\n#include <pthread.h>\nvoid *f(void *p) { puts(p); return 0; }
        int main() { pthread_t t; pthread_create(&t, 0, f, \"hello\"); return pthread_join(t, 0); }";
    std::fs::write(path("hello.c"), source).expect("the folder is writable");
    for compiler in ["/usr/bin/gcc", "/usr/bin/musl-gcc"] {
        let (source, hello) = (path("hello.c"), path("hello"));
        check(compiler, &["-O2", "-pthread", "-o", &hello, &source], "");
        if Path::new(compiler).exists() {
            check(&hello, &[], "hello");
            std::fs::remove_file(&hello).expect("the compiler made it");
        }
    }
}

#[test]
fn java_compiles_and_runs_threads_and_loopback_sockets() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("Hello.java");
    let code = r#"
        import java.net.*;
        public class Hello {
            public static void main(String[] arguments) throws Exception {
                Thread thread = new Thread(() -> System.out.println("thread"));
                thread.start(); thread.join();
                ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
                new Socket(server.getInetAddress(), server.getLocalPort()).close();
                System.out.println(new String(new ProcessBuilder("/bin/echo", "child").start()
                    .getInputStream().readAllBytes()).trim());
            }
        }"#;
    std::fs::write(&source, code).expect("the folder is writable");
    check("/usr/bin/java", &[&source.to_string_lossy()], "thread\nchild");
}

#[test]
fn a_program_that_attacks_is_reported_by_name() {
    let mut command = Command::new("/usr/bin/unshare");
    let (output, violations) = run_supervised(command.args(["--user", "/bin/true"]));
    assert!(!output.status.success());
    assert_eq!(violations, Violations::from([("unshare", 1)]));
}
