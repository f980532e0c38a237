"""A Python that has started and waits for its program.

Python runs this file as `usercustomize`, the last thing its start-up does (it lies under that name in a
directory of PYTHONPATH). The command line is that of a cold start, `python3 main.py`. So when this file
is through, the interpreter goes on to main.py by itself, with nothing of ours below the program: no
frame, no wrapper, no other way to end.

A job that this process cannot become, because it asks for something that is settled at the start
(another file to run, other variables for the interpreter), is started cold in its place.
"""


def wait_for_program():
    import os
    import posix
    import sys

    started_in = os.getcwd()
    # Where this file lies was put in front of PYTHONPATH; the program sees neither.
    here = os.path.dirname(__file__)
    started_with = dict(posix.environ)
    for name in (b"SANDBOX_WARM", b"SANDBOX_FORK_SOCKET", b"LD_PRELOAD"):
        started_with.pop(name, None)
    entries = started_with.pop(b"PYTHONPATH", b"").split(b":")
    entries.remove(os.fsencode(here))
    if entries:
        started_with[b"PYTHONPATH"] = b":".join(entries)
    sys.path[:] = [entry for entry in sys.path if entry != here]
    sys.path_importer_cache.pop(here, None)

    rehearse()
    go_quickly()
    if os.environ.get("SANDBOX_WARM") == "fork":
        # Our own fork takes the place of the C library's: it comes back in every child that is wanted.
        try:
            in_parent = os.fork() > 0
        except BaseException:
            in_parent = True
        if in_parent:
            os._exit(0)

    os.write(1, b"ready\n")

    def read_exactly(size):
        received = b""
        while len(received) < size:
            piece = os.read(0, size - len(received))
            if not piece:
                os._exit(0)
            received += piece
        return received

    job = read_exactly(int.from_bytes(read_exactly(4), "big"))
    directory, count, *rest = job.split(b"\0")[:-1]
    arguments = rest[:int(count)]
    pairs = [pair.partition(b"=")[::2] for pair in rest[int(count):]]
    environment = dict(pairs)
    os.chdir(directory)

    def settled_at_start(variables):
        """Variables that the interpreter or the C library read only once."""
        prefixes = (b"PYTHON", b"LC_", b"LD_", b"MALLOC_", b"GLIBC_", b"__PYVENV")
        names = (b"LANG", b"LANGUAGE", b"HOME", b"TZ")
        return {name: value for name, value in variables.items()
                if name in names or name.startswith(prefixes)}

    decoded = [os.fsdecode(argument) for argument in arguments]
    command = getattr(sys, "orig_argv", [sys.executable] + sys.argv)
    same_start = (
        decoded[:len(command)] == command
        and os.getcwd() == started_in
        and settled_at_start(environment) == settled_at_start(started_with)
    )
    if not same_start:
        os.execve(arguments[0], arguments, environment)

    if environment != posix.environ or list(environment) != list(posix.environ):
        os.environ.clear()
        for name, value in pairs:
            os.environb[name] = value
        posix.environ.clear()
        posix.environ.update(environment)

    sys.argv[:] = decoded[1:]
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = decoded


def rehearse():
    """Goes the way that a short program takes: parser, compiler, interpreter, output, exceptions."""
    import io
    import os
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    exec(compile(SAMPLE, "sample", "exec"), {"stream": stream, "__name__": "sample"})
    fields = b"/work\0001\0main.py\0A=b\0".split(b"\0")[:-1]
    dict(pair.partition(b"=")[::2] for pair in fields[3:])
    [os.fsdecode(field) for field in fields]
    os.getcwd()


def go_quickly():
    """Spares the end of the program what only takes time: freeing, piece by piece, what was there before it.

    What the program made is taken apart as ever: its modules are cleared, what it left open is closed. Then,
    if nothing is left to see to, the process ends. If there is (threads, extension modules with buffers of
    their own, an exit code that only the interpreter knows), the interpreter goes its usual way, without the
    modules of its start-up, which are kept by something that is never freed.
    """
    import sys
    modules, frame = sys.modules, sys._getframe
    known = {name for name in modules if name not in ("__main__", "usercustomize")}
    import _thread
    import _weakref
    import atexit
    import gc
    import os

    kept = [modules[name] for name in known]
    kept.append(kept)
    module_type = type(sys)

    def at_the_end():
        try:
            frame(1)
        except ValueError:
            pass
        else:
            # Somebody of the program's has called this, and goes on.
            return
        try:
            if nothing_is_left():
                flush()
                take_apart()
                flush()
                announce_early_exit()
        except BaseException:
            pass
        for name in known:
            if name in modules and name not in ("sys", "builtins"):
                modules[name] = None

    def nothing_is_left():
        # The interpreter takes the name out when the main program has come to its end. It leaves a trace in
        # `sys` if that was an exception.
        main = vars(modules["__main__"])
        ended_well = "__file__" not in main and "__cached__" not in main
        if not ended_well or hasattr(sys, "last_type") or hasattr(sys, "last_exc") or _thread._count():
            return False
        for name in modules:
            origin = getattr(getattr(modules[name], "__spec__", None), "origin", None)
            if name not in known and isinstance(origin, str) and origin.endswith(".so"):
                return False
        return True

    def announce_early_exit():
        """Says that all is done: whoever waits for the end need not wait for the kernel to clear up."""
        try:
            os.pread(0, 1, EARLY_EXIT)
        except OSError:
            pass
        os._exit(0)

    def flush():
        for stream in (sys.stdout, sys.stderr):
            if stream is not None and not stream.closed:
                stream.flush()

    def take_apart():
        """Does what the interpreter does, in its order, to the program's modules."""
        gc.collect()
        sys.stdin, sys.stdout, sys.stderr = sys.__stdin__, sys.__stdout__, sys.__stderr__
        left = []
        for name in list(modules):
            module, modules[name] = modules[name], None
            if name not in known and isinstance(module, module_type):
                left.append(_weakref.ref(module))
        module = None
        gc.collect()
        for reference in reversed(left):
            module = reference()
            if module is not None:
                names = vars(module)
                for name in [name for name in names if name[:1] == "_" and name[1:2] != "_"]:
                    names[name] = None
                for name in [name for name in names if name != "__builtins__"]:
                    names[name] = None
        gc.collect()

    atexit.register(at_the_end)
    for name in ("_thread", "_weakref", "atexit", "gc"):
        if name not in known:
            kept.append(modules.pop(name))
    gc.collect()
    gc.freeze()
    # The names of the main module are the program's. Frozen, they would keep what it made from being
    # collected at the end: no finaliser would run, and what a file that is still open buffers be lost.
    frozen = modules["__main__"]
    kept.append(frozen)
    modules["__main__"] = module_type("__main__")
    vars(modules["__main__"]).update(vars(frozen))


# No file has this offset. See profiles/default.toml.
EARLY_EXIT = 0x7BA5E1F000000000

SAMPLE = '''
import sys
"""Text."""
class Shape:
    sides = 0
    def __init__(self, name, *rest, **named):
        self.name = name
    def __repr__(self):
        return f"{self.name!r:>10} {self.sides:.2f}"
def total(numbers: list, start=0) -> int:
    for index, number in enumerate(sorted(numbers, key=lambda n: -n)):
        if number % 2 == 0 and index not in (3, 4) or not start:
            start += number
        elif number > 7:
            continue
        else:
            break
    while start > 10 ** 6:
        start //= 2
    return start
counts = {}
for word in "a b a".split():
    counts[word] = counts.get(word, 0) + 1
squares = [n * n for n in range(20) if n]
try:
    with stream:
        print("Hello, World!", total(squares), counts, Shape("x"), {*squares}, file=stream, end="\\n")
        print("%s %d" % ("a", 1), "{}".format(1.5), 1, 2.5, None, True, sep=", ", file=stream, flush=True)
        raise ValueError("no")
except (ValueError, KeyError) as error:
    text = str(error)
finally:
    del counts
if __name__ == "__main__":
    sys.exit(1)
'''

wait_for_program()
# Start-up asked for a module that usually is not there, and is told so: this leaves no module behind.
raise ImportError(name="usercustomize")
