# title: Starts threads without end
# how: Threads are processes to the kernel and cost the same numbers and memory. They get small stacks,
#   so that their number is what counts. It stops at 100.
# without: pids
# limits: pids=16
# expect: held
import threading

threading.stack_size(256 * 1024)
go = threading.Event()
threads = []
try:
    while len(threads) < 100:
        thread = threading.Thread(target=go.wait, args=(5,))
        thread.start()
        threads.append(thread)
    print("BREACH 100 threads at once")
except RuntimeError as error:
    print(f"HELD after {len(threads)}: {error}")
go.set()
