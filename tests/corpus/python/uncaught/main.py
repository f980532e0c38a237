"""An exception that nobody catches, with work still to be done on the way out."""

import atexit


class OutOfStock(Exception):
    pass


atexit.register(lambda: print("at exit"))


def order(count):
    if count > 3:
        raise OutOfStock(f"{count} wanted")
    return count


try:
    print(order(2))
    print(order(5))
finally:
    print("finally")
