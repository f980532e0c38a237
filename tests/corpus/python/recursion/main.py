"""A recursion that is deep and allowed, and one that has no end."""

import sys
import threading
from functools import cache


def depth(number):
    return 0 if number == 0 else 1 + depth(number - 1)


print(depth(900))
try:
    depth(10**9)
except RecursionError as error:
    print("caught:", str(error).split(" in ")[0])


@cache
def ways(coins, amount):
    if amount == 0:
        return 1
    if amount < 0 or not coins:
        return 0
    return ways(coins, amount - coins[0]) + ways(coins[1:], amount)


print(ways((100, 50, 20, 10, 5, 2, 1), 100))


def ackermann(m, n):
    if m == 0:
        return n + 1
    return ackermann(m - 1, 1 if n == 0 else ackermann(m, n - 1))


print(ackermann(2, 9))

# With a stack and a limit of its own a thread goes much deeper.
sys.setrecursionlimit(100_000)
threading.stack_size(128 << 20)
thread = threading.Thread(target=lambda: print(depth(50_000)))
thread.start()
thread.join()
