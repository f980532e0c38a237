"""A large sort, a stable one, custom orders, a heap and bisection."""

import bisect
import functools
import heapq
import itertools
import operator

# A generator of our own: the same numbers in every version.
state = 12345
numbers = []
for _ in range(200_000):
    state = (state * 1103515245 + 12345) % 2**31
    numbers.append(state)
ordered = sorted(numbers)
print(all(a <= b for a, b in itertools.pairwise(ordered)), len(ordered), sum(ordered) == sum(numbers))

people = [("Ada", 36), ("Bo", 24), ("Cy", 36), ("Di", 24), ("Ed", 30)]
print([name for name, _ in sorted(people, key=operator.itemgetter(1))])
print([name for name, _ in sorted(people, key=lambda person: (-person[1], person[0]))])
print([name for name, _ in sorted(people, key=operator.itemgetter(1), reverse=True)])


def by_number_then_text(left, right):
    if left.isdigit() and right.isdigit():
        return int(left) - int(right)
    return (left > right) - (left < right)


print(sorted(["10", "9", "b", "2", "a"], key=functools.cmp_to_key(by_number_then_text)))
print(heapq.nsmallest(3, [5, 1, 4, 2, 3]), heapq.nlargest(2, people, key=operator.itemgetter(1)))
print(bisect.bisect_left([1, 3, 3, 5], 3), bisect.bisect_right([1, 3, 3, 5], 3))
print(sorted(["Zebra", "apple", "Éclair", "zoo"]), sorted(["Zebra", "apple"], key=str.lower))
try:
    sorted([1, "a"])
except TypeError as error:
    print(error)
