//! Python programs that print all they can see of their process and environment.

use super::program::Program;

fn main(name: &str, code: &str) -> Program {
    Program::new(name, "main.py", code)
}

/// What a program sees of its own process.
pub(super) fn process() -> Vec<Program> {
    vec![
        main("arguments", "import sys\nprint(sys.argv, sys.orig_argv, __file__, __name__)")
            .args(&["a", "", "b c", "-x", "ü"]),
        main(
            "environment",
            "import os\nprint(sorted(os.environ.items()))\nos.system('env | sort')",
        )
        .env("MINE", "1=2")
        .env("HIGH", "ü"),
        main("environment of the C library", GETENV).env("MINE", "given"),
        main(
            "directory",
            "import os\nprint(os.getcwd(), os.readlink('/proc/self/cwd'), os.readlink('/proc/self/root'))",
        ),
        main("descriptors", DESCRIPTORS),
        main("status", STATUS),
        main("state that only calls tell", CALLS),
        main(
            "limits",
            "import resource as r\nfor n in sorted(vars(r)):\n  if n.startswith('RLIMIT'): print(n, r.getrlimit(getattr(r, n)))\nprint(open('/proc/self/limits').read())",
        ),
        main(
            "ids",
            "import os\nprint(os.getresuid(), os.getresgid(), os.getgroups())\nos.system('id')",
        ),
        main(
            "relations",
            "import os\nme = os.getpid()\nprint(os.getppid(), os.getpgid(0) == me, os.getsid(0) == me)\ntry: os.open('/dev/tty', os.O_RDWR)\nexcept OSError as error: print(error)",
        ),
        main(
            "a group of its own",
            "import os, subprocess\ntry: os.setsid()\nexcept OSError as error: print(error)\nprint(subprocess.run(['ps', '--version'], capture_output=True).returncode)\nos.killpg(0, 0)",
        ),
        main(
            "names",
            "import os\nprint(open('/proc/self/comm').read(), os.readlink('/proc/self/exe'), os.uname().nodename)",
        ),
        main(
            "threads",
            "import os, threading\nprint(os.listdir('/proc/self/task') == [str(os.getpid())], threading.active_count(), threading.main_thread().name)",
        ),
        main(
            "signals",
            "import signal\nfor s in sorted(signal.valid_signals()): print(s, signal.getsignal(s))\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.sigpending(), signal.getitimer(signal.ITIMER_REAL))",
        ),
        main(
            "umask of files",
            "import os\nos.close(os.open('made', os.O_CREAT | os.O_WRONLY, 0o777))\nos.mkdir('dir')\nprint(oct(os.stat('made').st_mode), oct(os.stat('dir').st_mode), os.stat('made').st_uid)",
        ),
        main(
            "own files",
            "import os\ns = os.stat('main.py')\nprint(oct(s.st_mode), s.st_uid, s.st_gid, s.st_nlink, s.st_size)",
        ),
        main(
            "locale",
            "import locale, sys, time\nprint(locale.getlocale(), locale.setlocale(locale.LC_ALL, None), sys.getfilesystemencoding(), time.tzname)",
        ),
        main(
            "garbage collector",
            "import gc\nprint(gc.isenabled(), gc.get_threshold(), gc.callbacks, gc.garbage, gc.get_debug())",
        ),
        main(
            "mapped files of the interpreter",
            "import re\nfound = set(re.findall(r'/usr\\S+', open('/proc/self/maps').read()))\nprint(sorted(found))",
        ),
    ]
}

/// What a program sees around it.
pub(super) fn world() -> Vec<Program> {
    vec![
        main(
            "listings",
            "import os\nfor top in ('/', '/tmp', '/work', '/dev', '/dev/shm', '/etc'):\n  print(top, sorted(os.listdir(top)), oct(os.stat(top).st_mode), os.stat(top).st_uid)",
        ),
        main(
            "every file it can write beside",
            "import os\nfor top in ('/work', '/tmp', '/dev/shm'):\n  for at, folders, files in os.walk(top): print(at, sorted(folders), sorted(files))",
        ),
        main(
            "mounts",
            "import re\nfor line in open('/proc/self/mountinfo'):\n  fields = re.sub('id=[0-9]+', 'id', line).split()\n  print(fields[3:6], fields[fields.index('-') + 1:])",
        ),
        main(
            "room",
            "import os\nfor top in ('/work', '/tmp', '/dev/shm'):\n  s = os.statvfs(top)\n  print(top, s.f_blocks, s.f_files, s.f_flag, s.f_bfree, s.f_ffree)",
        ),
        main(
            "processes",
            "import os\npids = [int(n) for n in os.listdir('/proc') if n.isdigit()]\nprint(len(pids), 1 in pids, os.getpid() in pids, sorted(n for n in os.listdir('/proc') if not n.isdigit()))\nprint(open('/proc/1/comm').read())",
        ),
        main(
            "namespaces",
            "import os\nprint(sorted(os.listdir('/proc/self/ns')))\nfor kind in ('pid', 'time'):\n  print(os.readlink(f'/proc/self/ns/{kind}') == os.readlink(f'/proc/self/ns/{kind}_for_children'))\nfor kind in ('uid', 'gid'): print([line.split()[::2] for line in open(f'/proc/self/{kind}_map')])\nprint(open('/proc/self/cgroup').read(), open('/proc/self/setgroups').read())",
        ),
        main(
            "network",
            "import socket\nprint([line.split(':')[0] for line in open('/proc/self/net/dev')], socket.if_nametoindex('lo'), socket.gethostname())\ns = socket.socket()\nprint(s.connect_ex(('127.0.0.1', 9)), s.connect_ex(('192.0.2.1', 9)))",
        ),
        main(
            "clock since the start of the machine",
            "import time\nprint(time.clock_gettime(time.CLOCK_BOOTTIME) < 3600, time.clock_gettime(time.CLOCK_MONOTONIC) < 3600, time.time() > 1.7e9)",
        ),
        main("denied calls", DENIED),
        main(
            "cores",
            "import os\nprint(os.cpu_count(), os.sched_getaffinity(0), os.sched_getscheduler(0), os.nice(0), os.getpriority(os.PRIO_PROCESS, 0))",
        ),
    ]
}

/// What a program does, and how it ends.
pub(super) fn endings() -> Vec<Program> {
    vec![
        main("no input", "import sys\nprint(repr(sys.stdin.read()))"),
        main("some input", "import sys\nprint(repr(input()), repr(sys.stdin.read()))").stdin("first\nsecond\n"),
        main("a megabyte of input", "import hashlib, sys\nd = sys.stdin.buffer.read()\nprint(len(d), hashlib.sha256(d).hexdigest())")
            .stdin(b"0123456789abcde\n".repeat(1 << 16)),
        main("input that nobody reads", "print('done')").stdin(b"x".repeat(1 << 20)),
        main("uncaught", "def f(n):\n    return 1 / n\nf(0)"),
        main("syntax error", "print('x')\ndef f(:\n    pass"),
        main("exit with a text", "import sys\nprint('x')\nsys.exit('no')"),
        main("exit with a code", "import sys\nsys.exit(7)"),
        main("exit at once", "import os\nprint('x', end='')\nos._exit(9)"),
        main("killed", "import os\nprint('x')\nos.kill(os.getpid(), 9)"),
        main("terminated", "import os, time\nos.kill(os.getpid(), 15)\ntime.sleep(9)"),
        main("segmentation fault", "import ctypes\nctypes.string_at(0)"),
        main("broken pipe", "import os\nos.close(0)\nr, w = os.pipe()\nos.close(r)\nos.write(w, b'x')"),
        main("threads that end late", "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.1), print('late'))).start()\nprint('main')"),
        main("children", "import subprocess, sys\nprint(subprocess.check_output([sys.executable, '-c', 'import os; print(os.environ[\"A\"], 7)']))\nprint(subprocess.run('exit 3', shell=True))").env("A", "b"),
        main("forked", "import os\nif os.fork() == 0:\n  print('child', flush=True); os._exit(3)\nprint(os.waitstatus_to_exitcode(os.wait()[1]), os.listdir('/work'))"),
        main("many forks", "import os\nfor n in range(5):\n  if os.fork() == 0: os._exit(n)\nprint(sorted(os.waitstatus_to_exitcode(os.wait()[1]) for n in range(5)))"),
        main("orphan", "import os, time\nif os.fork() == 0:\n  if os.fork() == 0:\n    time.sleep(.1); print(os.getppid(), flush=True)\n  os._exit(0)\nos.wait(); time.sleep(.3)"),
        main("at exit", "import atexit\natexit.register(print, 'bye')\natexit.register(lambda: 1 / 0)"),
        main("deleted at exit", "class A:\n  def __del__(self): print('gone', type(self).__name__)\na = A()\nb = [A()]\nb.append(b)"),
        main("open file at exit", "f = open('out', 'w')\nf.write('kept')"),
        main("second file", "import helper\nprint(helper.__file__)\nhelper.fail()").file("helper.py", "def fail():\n  raise ValueError(__name__)"),
        main("a file with the name of ours", "import usercustomize, warm\nprint(usercustomize.a, warm.a)")
            .file("usercustomize.py", "a = 1").file("warm.py", "a = 2"),
        main("hidden files of its own", "import os\nprint(sorted(os.listdir('.')), open('.warm/usercustomize.py').read())")
            .file(".warm/usercustomize.py", "mine").file(".fork.so", "mine too"),
        Program::new("another name", "src/app.py", "import sys\nprint(__file__, sys.path[0], sys.argv)\n1 / 0").args(&["a"]),
        main("another directory", "import os, sys\nprint(os.getcwd(), __file__, sys.path[0], os.listdir())\nopen('out', 'w').write('x')")
            .file("sub/data", "x").workdir("sub"),
        main("variables for the interpreter", "import sys, hashlib\nprint(sys.flags, hash('a'), sys.path)")
            .env("PYTHONHASHSEED", "7").env("PYTHONPATH", "/work/more"),
        main("a library to preload", "import os\nprint(os.environ['LD_PRELOAD'])").env("LD_PRELOAD", "/nonexistent.so"),
        main("variables with our names", "import os\nprint(sorted(os.environ.items()))")
            .env("SANDBOX_WARM", "fork").env("SANDBOX_FORK_SOCKET", "1"),
        main("memory beyond the limit", "a = bytearray(1 << 33)"),
        main("recursion", "n = 0\ndef f():\n  global n\n  n += 1\n  f()\ntry: f()\nexcept RecursionError as e: print(n, e)"),
    ]
}

const GETENV: &str = "
import ctypes
libc = ctypes.CDLL(None)
libc.getenv.restype = ctypes.c_char_p
for name in (b'MINE', b'HOME', b'PATH', b'PYTHONPATH', b'LD_PRELOAD', b'SANDBOX_WARM', b'SANDBOX_FORK_SOCKET'):
    print(name, libc.getenv(name))
";

const DESCRIPTORS: &str = "
import fcntl, os, stat
for name in sorted(os.listdir('/proc/self/fd'), key=int):
    fd = int(name)
    try:
        kind = stat.S_IFMT(os.fstat(fd).st_mode)
    except OSError:
        continue
    print(fd, kind == stat.S_IFIFO, fcntl.fcntl(fd, fcntl.F_GETFL), fcntl.fcntl(fd, fcntl.F_GETFD))
    print([line.split() for line in open(f'/proc/self/fdinfo/{fd}') if line[:3] in ('pos', 'fla')])
print(fcntl.fcntl(1, 1032), oct(os.fstat(1).st_mode), os.isatty(0))
print(os.open('/dev/null', 0))
";

/// Without what is measured or is a name of this one process.
const STATUS: &str = "
varies = ('Pid', 'Tgid', 'Ngid', 'NStgid', 'NSpid', 'NSpgid', 'NSsid', 'Vm', 'Rss', 'SigQ', 'voluntary', 'nonvoluntary', 'HugetlbPages')
for line in open('/proc/self/status'):
    if not line.startswith(varies):
        print(line, end='')
for name in ('oom_score_adj', 'coredump_filter', 'personality', 'loginuid', 'timerslack_ns'):
    try:
        print(name, open('/proc/self/' + name).read())
    except OSError as error:
        print(name, error)
";

const CALLS: &str = "
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
number = ctypes.c_int(-1)
for name, option in (('death signal', 2), ('subreaper', 37), ('child timer', 40)):
    result = libc.prctl(option, ctypes.byref(number), 0, 0, 0)
    print(name, result if option == 40 else (result, number.value), ctypes.get_errno())
for name, option in (('dumpable', 3), ('keep capabilities', 7), ('secure bits', 27), ('timer slack', 30),
                     ('machine check', 34), ('no new privileges', 39), ('huge pages', 42), ('speculation', 52)):
    print(name, libc.prctl(option, 0, 0, 0, 0), ctypes.get_errno())
print('personality', libc.personality(0xffffffff))
print('session keyring', libc.syscall(250, 0, -3, 0) > 0)
stack = (ctypes.c_long * 3)()
print('signal stack', libc.sigaltstack(None, stack), stack[1] & 0xffffffff)
mode, mask = ctypes.c_int(), ctypes.c_ulong()
print('memory policy', libc.syscall(239, ctypes.byref(mode), None, 0, None, 0), mode.value)
print('io priority', libc.syscall(252, 1, 0))
";

const DENIED: &str = "
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, number, args in (('mount', 165, (0, 0, 0, 0, 0)), ('ptrace', 101, (0, 0, 0, 0)), ('unshare', 272, (0x10000000,)),
                           ('bpf', 321, (0, 0, 0)), ('keyctl', 250, (0, -3, 1)), ('setns', 308, (0, 0)), ('userfaultfd', 323, (0,)),
                           ('seccomp', 317, (1, 0, 0)), ('perf', 298, (0, 0, 0, 0, 0)), ('io_uring', 425, (1, 0)), ('settimeofday', 164, (0, 0))):
    ctypes.set_errno(0)
    print(name, libc.syscall(number, *args), ctypes.get_errno())
for path in ('/usr/x', '/etc/x', '/work/x', '/tmp/x', '/dev/x', '/proc/sys/kernel/hostname', '/proc/1/environ', '/proc/1/mem'):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
        print(path)
    except OSError as error:
        print(error)
";
