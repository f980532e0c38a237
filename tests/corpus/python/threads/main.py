"""Four workers take words from a queue and count letters under one lock."""

import queue
import threading
from concurrent.futures import ThreadPoolExecutor

WORDS = ["anchor", "beacon", "canoe", "dinghy", "estuary", "ferry"] * 500
counts = {}
lock = threading.Lock()
work = queue.Queue()
started = threading.Barrier(4)


def count_letters():
    started.wait()
    while (word := work.get()) is not None:
        for letter in word:
            with lock:
                counts[letter] = counts.get(letter, 0) + 1


threads = [threading.Thread(target=count_letters) for _ in range(4)]
for thread in threads:
    thread.start()
for word in WORDS:
    work.put(word)
for _ in threads:
    work.put(None)
for thread in threads:
    thread.join()
print({letter: counts[letter] for letter in sorted(counts) if counts[letter] > 1500})

with ThreadPoolExecutor(max_workers=3) as pool:
    print(sum(pool.map(lambda number: number * number, range(1000))))

mine = threading.local()
mine.name = "main"


def has_no_name():
    print("another thread sees a name:", hasattr(mine, "name"))


thread = threading.Thread(target=has_no_name)
thread.start()
thread.join()
print("threads left:", threading.active_count())
