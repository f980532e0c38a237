"""Python programs whose behaviour must not depend on how the interpreter was started."""
import signal

from case import Case

HELLO = 'print("Hello, World!")\n'

CASES = [
    Case("hello", HELLO),
    Case("arguments", "import sys\nprint(sys.argv, getattr(sys, 'orig_argv', 0))\n", args=("a", "", "b c", "ü")),
    Case("globals of the main module", """
def plain(value):
    return type(value).__name__ if "object at" in repr(value) else repr(value)
print([(name, plain(value)) for name, value in list(globals().items())])
print(__loader__.path, __loader__.name, __file__, __builtins__)
import __main__
print(__main__, vars(__main__) is globals())
"""),
    Case("sys", """
import sys
print(sys.path, sys.flags, sys.executable, sys.prefix, sys.warnoptions, sys._xoptions)
print(sys.meta_path, len(sys.path_hooks), sys.getrecursionlimit(), sys.getswitchinterval())
print(sorted(sys.path_importer_cache), sys.excepthook, sys.displayhook, sys.unraisablehook)
print(sorted(vars(sys)), sys.dont_write_bytecode, sys.gettrace(), sys.getprofile())
"""),
    Case("modules", "import sys\nprint(list(sys.modules))\n"),
    Case("builtins", "import builtins\nprint(sorted(vars(builtins)))\n"),
    Case("streams", """
import sys
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream, stream.buffer, stream.line_buffering, stream.write_through, stream.errors)
print(sys.stdout is sys.__stdout__, sys.stdin.buffer.raw.mode if hasattr(sys.stdin.buffer, "raw") else "")
"""),
    Case("environment", """
import os, posix, subprocess
print(list(os.environ.items()), list(posix.environ.items()))
print(subprocess.run(["env"], capture_output=True, text=True).stdout, os.getenv("SANDBOX_WARM"))
"""),
    Case("a variable of one's own", "import os\nprint(dict(os.environ))\nos.system('env')\n",
         environment={"MINE": "1=2", "EMPTY": "", "HIGH": "ü"}),
    Case("a variable for the interpreter", "import sys\nprint(sys.flags, hash('a'))\n",
         environment={"PYTHONHASHSEED": "7"}),
    Case("buffered output", "import os\nprint('first')\nos.write(1, b'second\\n')\n",
         environment={"PYTHONUNBUFFERED": ""}),
    Case("time zone", "import time\nprint(time.tzname, time.localtime(0).tm_hour)\n",
         environment={"TZ": "Asia/Tokyo"}),
    Case("search path", "import sys\nprint(sys.path)\n", environment={"PYTHONPATH": "/opt/packages"}),
    Case("working directory", "import os\nprint(os.getcwd(), os.listdir(), oct(os.umask(0)))\n"),
    Case("descriptors", "import os\nprint(sorted(os.listdir('/proc/self/fd')))\n"),
    Case("signals and threads", """
import re, signal, threading
print(re.findall("(Sig[BIC].*|Threads.*)", open("/proc/self/status").read()))
print([(s, signal.getsignal(s)) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)], threading.active_count())
"""),
    Case("read all input", "import sys\nd = sys.stdin.read()\nprint(len(d), d[:5], d[-5:])\n",
         stdin=b"0123456789\n" * 300_000),
    Case("input line by line", "print(input('name? '))\nprint(input())\ntry:\n  input()\nexcept EOFError as e:\n  print(repr(e))\n",
         stdin=b"x\ny\n"),
    Case("binary input", "import sys\nprint(sys.stdin.buffer.read())\n", stdin=bytes(range(256))),
    Case("raw input", "import os\nprint(os.read(0, 3))\nprint(os.read(0, 99))\n", stdin=b"abcdef"),
    Case("no input", "import sys\nprint(repr(sys.stdin.read()))\n"),
    Case("dialogue", "print('one')\nprint(input())\nprint('two')\nprint(input())\n",
         steps=((b"one\n", b"a\n"), (b"two\n", b"b\n"))),
    Case("uncaught exception", "def f(n):\n    return 1 / n\n\ndef g():\n    f(0)\n\ng()\n"),
    Case("chained exceptions", """
try:
    try:
        {}["a"]
    except KeyError as error:
        raise ValueError("no") from error
except ValueError:
    raise TypeError("worse")
"""),
    Case("exception group", "raise ExceptionGroup('g', [ValueError(1), TypeError(2)])\n"),
    Case("syntax error", "print('x')\ndef f(:\n    pass\n"),
    Case("syntax error at the end", "print((1, 2\n"),
    Case("wrong indentation", "if 1:\n  a = 1\n    b = 2\n"),
    Case("tabs and spaces", "if 1:\n        a = 1\n\tb = 2\n"),
    Case("not utf-8", b"# \xff\xfe\nprint(1)\n"),
    Case("declared encoding", "# -*- coding: latin-1 -*-\nprint('é')\n".encode("latin-1")),
    Case("byte order mark", b"\xef\xbb\xbfprint(1)\n"),
    Case("zero byte", b"print(1)\n\0print(2)\n"),
    Case("unknown name, with a hint", "import sys\nlenght = 1\nprint(length)\n"),
    Case("no such module", "import nothing_like_this\n"),
    Case("stack from inside", """
import sys, traceback
def f():
    traceback.print_stack()
    depth, frame = 0, sys._getframe()
    while frame:
        depth, frame = depth + 1, frame.f_back
    print(depth)
f()
"""),
    Case("recursion to the limit", """
depth = 0
def f():
    global depth
    depth += 1
    f()
try:
    f()
except RecursionError as error:
    print(depth, error)
"""),
    Case("recursion error", "def f():\n    f()\nf()\n"),
    *(Case(f"exit with {value}", f"import sys\nprint('x')\nsys.exit({value})\n")
      for value in ("", "0", "3", "256", "-1", "None", "'text'", "True", "[1, 2]", "2 ** 70", "1.5")),
    Case("raise SystemExit", "raise SystemExit\n"),
    Case("exit builtin", "exit(4)\n"),
    Case("os._exit", "import os\nprint('x')\nos._exit(9)\n"),
    Case("abort", "import os\nos.abort()\n"),
    Case("kills itself", "import os, signal\nprint('x')\nos.kill(os.getpid(), signal.SIGKILL)\n"),
    Case("terminates itself", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)\nimport time\ntime.sleep(9)\n"),
    Case("segmentation fault", "import ctypes\nctypes.string_at(0)\n"),
    Case("interrupted", "import threading, time\nthreading.Timer(0.2, print, ['up']).start()\ntime.sleep(30)\n", steps=((b"up\n", signal.SIGINT),)),
    Case("interrupt handled", """
import threading, time
try:
    threading.Timer(0.2, print, ['up']).start()
    time.sleep(30)
except KeyboardInterrupt as error:
    print(repr(error))
""", steps=((b"up\n", signal.SIGINT),)),
    Case("at exit", "import atexit\natexit.register(print, 'bye')\natexit.register(lambda: 1 / 0)\nprint('x')\n"),
    Case("threads at exit", """
import threading, time
def late():
    time.sleep(0.1)
    print("late")
threading.Thread(target=late).start()
threading.Thread(target=lambda: time.sleep(60), daemon=True).start()
print("main ends")
"""),
    Case("exception in a thread", "import threading\nt = threading.Thread(target=lambda: 1 / 0, name='t')\nt.start()\nt.join()\n"),
    Case("exception in __del__", "class A:\n    def __del__(self):\n        1 / 0\nA()\nprint('after')\n"),
    Case("deleted at exit", """
class A:
    def __init__(self, name):
        self.name = name
    def __del__(self):
        print("gone", self.name)
a = A("global")
cycle = [A("in a cycle")]
cycle.append(cycle)
"""),
    Case("deleted at exit with everything still there", """
import os
def helper():
    return os.getcwd()
class A:
    def __del__(self):
        print(helper(), os.path.basename(__file__), later)
a = A()
later = 1
"""),
    Case("file left open beside a function", "def f():\n    pass\nout = open('out', 'w')\nout.write('kept')\n"),
    Case("deleted at exit, without classes in a cycle", "import helper\na = helper.A()\nprint('end')\n",
         others={"helper.py": "class A:\n    def __del__(self):\n        print('gone', __name__)\nb = A()\n"}),
    Case("modules beside it", "import helper, package.inner\nprint(helper.__file__, package.inner.name)\nhelper.fail()\n",
         others={"helper.py": "def fail():\n    raise ValueError(__name__)\n",
                 "package/__init__.py": "", "package/inner.py": "name = __name__\n"}),
    Case("a module that hides the library's", "import random\nprint(random.mine)\n", others={"random.py": "mine = 1\n"}),
    Case("usercustomize of one's own", "import usercustomize\nprint(usercustomize.mine)\n",
         others={"usercustomize.py": "mine = 1\n"}),
    Case("warm of one's own", "import warm\nprint(warm.mine)\n", others={"warm.py": "mine = 1\n"}),
    Case("source of a function", "import inspect, linecache\ndef f():\n    return 1\nprint(inspect.getsource(f), linecache.getline(__file__, 1))\n"),
    Case("pools of processes", """
import multiprocessing, concurrent.futures
def square(n):
    return n * n
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(square, range(5)))
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        print(list(pool.map(square, range(5))))
"""),
    Case("pickle of a class", "import pickle\nclass A:\n    pass\nprint(type(pickle.loads(pickle.dumps(A()))), A.__module__)\n"),
    Case("dataclasses and annotations", """
from __future__ import annotations
from dataclasses import dataclass
import typing
@dataclass
class P:
    x: int
    y: list[int]
print(P(1, []), typing.get_type_hints(P))
"""),
    Case("asyncio", "import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    print('x')\n    raise ValueError\nasyncio.run(f())\n"),
    Case("warnings", "import warnings\nwarnings.warn('careful')\nwarnings.warn('old', DeprecationWarning)\nx = 1 is 1\nprint(warnings.filters)\n"),
    Case("garbage collector", "import gc\nprint(gc.isenabled(), gc.get_threshold(), gc.callbacks, gc.garbage, gc.get_debug())\n"),
    Case("run another file", "import runpy\nrunpy.run_path('other.py', run_name='__main__')\n", others={"other.py": "print(__name__, __file__)\n1/0\n"}),
    Case("exec and eval", "exec('def f():\\n  1/0')\nf()\n"),
    Case("child python", "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import sys; print(sys.path, sys.argv)'], capture_output=True).stdout)\n"),
    Case("large output", "for i in range(200000): print(i)\n"),
    Case("both streams", "import sys\nfor i in range(5):\n  print(i)\n  print(-i, file=sys.stderr)\n"),
    Case("another entry", "import sys\nprint(__file__, sys.path[0], sys.argv)\n1/0\n", entry="src/app.py", args=("a",)),
    Case("empty program", ""),
    Case("locale and encodings", "import locale, sys\nprint(locale.getlocale(), sys.getfilesystemencoding(), sys.stdout.encoding, locale.setlocale(locale.LC_ALL))\n"),
    Case("contextvars and decimal", "import decimal, contextvars\nprint(decimal.getcontext(), list(contextvars.copy_context()))\n"),
]
