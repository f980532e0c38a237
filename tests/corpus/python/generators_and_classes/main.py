"""Generators, coroutines, dataclasses, descriptors, pattern matching."""

import asyncio
import dataclasses
import enum
import itertools


def primes():
    found = []
    for number in itertools.count(2):
        if all(number % prime for prime in found):
            found.append(number)
            yield number


print(list(itertools.takewhile(lambda prime: prime < 40, primes())))


def average():
    total, count, value = 0.0, 0, None
    while True:
        sent = yield value
        total, count = total + sent, count + 1
        value = total / count


running = average()
next(running)
print([running.send(number) for number in (10, 20, 60)])


class Suit(enum.Enum):
    HEARTS = "♥"
    SPADES = "♠"


@dataclasses.dataclass(frozen=True, order=True)
class Card:
    rank: int
    suit: Suit = dataclasses.field(compare=False, default=Suit.SPADES)


def describe(thing):
    match thing:
        case Card(rank=1, suit=suit):
            return f"ace of {suit.value}"
        case [first, *rest] if rest:
            return f"{first} and {len(rest)} more"
        case {"kind": kind}:
            return f"a {kind}"
        case _:
            return "something"


print(max(Card(3), Card(12)), describe(Card(1, Suit.HEARTS)), describe([1, 2, 3]), describe({"kind": "map"}))


async def tick(name, turns, log):
    for turn in range(turns):
        log.append(f"{name}{turn}")
        await asyncio.sleep(0)


async def main():
    log = []
    async with asyncio.TaskGroup() as group:
        group.create_task(tick("a", 2, log))
        group.create_task(tick("b", 3, log))
    print(" ".join(log))


asyncio.run(main())
