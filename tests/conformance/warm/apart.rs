//! No byte of one execution is visible to another, however their runtimes were started.

use sandbox::{EventKind, RequestBuilder, Sandbox};
use sandbox_tests::warm::{
    StartMethod, execute, execute_warm, prime, wait_until_full, warm_runtimes,
};

use crate::table::python;

/// Number of programs that look for what another one left.
const LOOKERS: usize = 20;
pub(super) const BOTH: [StartMethod; 2] = [StartMethod::Fresh, StartMethod::Forked];

/// Leaves something in every place that could be shared, and processes that go on.
const LEAVES: &str = r"
import ctypes, mmap, os, signal, socket, subprocess, sys, time
tries = {}
def attempt(name, deed):
    try:
        tries[name] = deed()
    except OSError as error:
        tries[name] = error
libc = ctypes.CDLL(None, use_errno=True)
for place in ('/work', '/tmp', '/dev/shm', '/work/.warm', '/tmp/sub', '/etc', '/usr/lib/python3', '/opt', '/dev', '/'):
    attempt('mkdir ' + place, lambda: os.makedirs(place, exist_ok=True))
    attempt('file ' + place, lambda: open(place + '/left-behind', 'w').write('left-behind'))
    attempt('module ' + place, lambda: open(place + '/usercustomize.py', 'w').write('raise SystemExit(99)'))
os.environ['LEFT_BEHIND'] = 'left-behind'
listener = socket.socket(socket.AF_UNIX)
attempt('abstract', lambda: listener.bind('\0left-behind') or listener.listen())
key = libc.shmget(0x1ef7, 4096, 0o1666)
libc.shmat.restype = ctypes.c_void_p
libc.msgget(0x1ef7, 0o1666)
libc.semget(0x1ef7, 1, 0o1666)
attempt('posix memory', lambda: open('/dev/shm/left-behind', 'w').write('x'))
libc.syscall(248, b'user', b'left-behind', b'secret', 6, -3)
attempt('clock', lambda: time.clock_settime(time.CLOCK_REALTIME, 1))
attempt('name', lambda: socket.sethostname('left-behind'))
os.umask(0)
os.nice(5)
if os.fork() == 0:
    os.setsid()
    for number in (1, 2, 15):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(600)
    os._exit(0)
print('left', sorted(tries))
sys.stdout.flush()
";

/// Prints everything that could differ from what the first program saw.
const LOOKS: &str = r"
import ctypes, os, socket, time
libc = ctypes.CDLL(None, use_errno=True)
for top in ('/work', '/tmp', '/dev/shm'):
    for at, folders, files in os.walk(top):
        print(at, sorted(folders), sorted(files))
print(sorted(os.environ.items()))
listener = socket.socket(socket.AF_UNIX)
print(listener.connect_ex('\0left-behind'))
print('system v', libc.shmget(0x1ef7, 0, 0), libc.msgget(0x1ef7, 0), libc.semget(0x1ef7, 0, 0))
print('key', libc.syscall(249, b'user', b'left-behind', None, 0), libc.syscall(250, 10, -3, b'user', b'left-behind', 0))
print(time.time() > 1.7e9, socket.gethostname(), oct(os.umask(0)), os.nice(0))
print(len([name for name in os.listdir('/proc') if name.isdigit()]))
print(open('/proc/self/cgroup').read(), sorted(os.listdir('/')))
";

/// Holds the secret in its code, input, environment, arguments, files and memory.
const KEEPS: &str = "
import os, sys, time
secret = 'SECRET'
held = [input(), sys.argv[1], os.environ['HELD'], secret.encode() * 1000, {secret: secret}, bytearray(secret.encode())]
open('/dev/shm/held', 'w').write(secret * 100)
open('held', 'w').write(secret * 100)
assert held[0] == held[1] == held[2] == secret
print('kept', flush=True)
time.sleep(float(sys.argv[2]))
";

/// Searches its own memory for a text that it has in two halves only, so that it does not find itself.
const SEARCHES: &str = r"
import sys
first, second = sys.argv[1], sys.argv[2]
found = total = 0
def needle_at(memory, start):
    at = memory.find(first.encode(), start)
    while at >= 0:
        if memory[at + len(first):at + len(first) + len(second)] == second.encode():
            return at
        at = memory.find(first.encode(), at + 1)
    return -1
with open('/proc/self/mem', 'rb', 0) as memory:
    for line in open('/proc/self/maps').read().splitlines():
        fields = line.split()
        if 'r' not in fields[1] or fields[-1] in ('[vvar]', '[vsyscall]', '[vvar_vclock]'):
            continue
        start, end = (int(number, 16) for number in fields[0].split('-'))
        try:
            memory.seek(start)
            piece = memory.read(end - start)
        except (OSError, ValueError, OverflowError):
            continue
        total += len(piece)
        found += needle_at(piece, 0) >= 0
        del piece
print(found, total > 1 << 20)
";

/// A sandbox with a full pool of Pythons that were started in this way.
pub(super) fn with_warm_runtimes(method: StartMethod) -> Sandbox {
    let sandbox = method.only().build().expect("a sandbox can be started");
    prime(&sandbox, || python("pass"));
    ensure(&sandbox, method);
    sandbox
}

/// Waits until the pool is full, and checks how its runtimes were started.
pub(super) fn ensure(sandbox: &Sandbox, method: StartMethod) {
    wait_until_full(sandbox);
    let waiting = warm_runtimes("python3");
    assert!(waiting.iter().all(|runtime| runtime.method == method), "{waiting:?}");
}

fn secret() -> String {
    let bytes =
        std::fs::read("/proc/sys/kernel/random/uuid").expect("the kernel makes random names");
    String::from_utf8(bytes).expect("a text").trim().replace('-', "")
}

fn keeps(secret: &str, seconds: &str) -> RequestBuilder {
    python(&KEEPS.replace("SECRET", secret))
        .args([secret, seconds])
        .env("HELD", secret)
        .stdin(secret.as_bytes().to_vec())
}

fn searches(secret: &str) -> RequestBuilder {
    let (first, second) = secret.split_at(secret.len() / 2);
    python(SEARCHES).args([first, second])
}

#[test]
fn nothing_that_a_program_leaves_is_there_for_the_next() {
    let cold = Sandbox::builder().warm(false).build().unwrap();
    let expected = execute(&cold, python(LOOKS)).stdout;
    assert!(expected.contains("/work [] ['main.py']"), "{expected}");
    for method in BOTH {
        let sandbox = with_warm_runtimes(method);
        for round in 0..LOOKERS {
            if round % 4 == 0 {
                ensure(&sandbox, method);
                let report = execute_warm(&sandbox, python(LEAVES));
                assert!(report.stdout.starts_with("left"), "{}", report.stderr);
            }
            ensure(&sandbox, method);
            let report = execute_warm(&sandbox, python(LOOKS));
            assert_eq!(report.stdout, expected, "{method:?} {}", report.stderr);
        }
    }
}

/// The control for the test below: the search finds a secret that is there.
#[test]
fn a_secret_of_its_own_is_found_in_memory() {
    let sandbox = with_warm_runtimes(StartMethod::Fresh);
    let secret = secret();
    let (first, second) = secret.split_at(16);
    let code = format!("own = '{first}' + '{second}'\nown = own * 2\n{SEARCHES}");
    let report = execute_warm(&sandbox, python(&code).args([first, second]));
    assert!(report.stdout.ends_with(" True\n"), "{} {}", report.stdout, report.stderr);
    assert!(!report.stdout.starts_with("0 "), "the search finds nothing at all");
}

#[test]
fn no_secret_of_another_program_is_in_memory() {
    for method in BOTH {
        let sandbox = with_warm_runtimes(method);
        for _ in 0..5 {
            let (before, meanwhile) = (secret(), secret());
            ensure(&sandbox, method);
            let report = execute_warm(&sandbox, keeps(&before, "0"));
            assert_eq!(report.stdout, "kept\n", "{}", report.stderr);
            // Its memory is free for the next program by now.
            ensure(&sandbox, method);
            let mut running = sandbox.start(keeps(&meanwhile, "60").build().unwrap()).unwrap();
            let wrote = running.events().any(|event| matches!(event.kind, EventKind::Output(..)));
            assert!(wrote, "it ended before it had its secret");
            for sought in [&before, &meanwhile, &before, &meanwhile] {
                ensure(&sandbox, method);
                let report = execute_warm(&sandbox, searches(sought));
                assert_eq!(report.stdout, "0 True\n", "{method:?} {}", report.stderr);
            }
            running.cancel();
            assert_eq!(running.wait().unwrap().stdout, "kept\n");
        }
    }
}
