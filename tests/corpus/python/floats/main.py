"""Floating point as IEEE 754 has it, and exact arithmetic beside it."""

import math
from decimal import ROUND_HALF_EVEN, Decimal
from fractions import Fraction

print(0.1 + 0.2, 1e16 + 1, 5e-324, 2.0**1023 * 1.9999999999999998)
print(sum([0.1] * 10), math.fsum([0.1] * 10))
print(f"{2.5:.0f} {3.5:.0f} {0.125:.2f} {1e21:g} {1234567.891:,.2f} {255:#x} {-0.0}")
print(round(2.675, 2), round(-1.5), math.floor(-1.5), int(-1.9))
nan, infinity = math.nan, math.inf
print(nan == nan, nan != nan, infinity - infinity, max(1.0, nan), sorted([2, -infinity, 1]))
print((0.1).hex(), float.fromhex("0x1.8p1"), (0.75).as_integer_ratio())
print(math.sqrt(2), math.exp(1), math.atan2(-1.0, -0.0), math.fmod(-7, 3), -7 % 3)
total = Decimal(0)
for _ in range(1000):
    total += Decimal("0.001")
print(total, Decimal("2.675").quantize(Decimal("0.01"), ROUND_HALF_EVEN), Fraction(1, 3) + Fraction(1, 6))
harmonic = 0.0
for n in range(1, 1_000_001):
    harmonic += 1.0 / n
print(repr(harmonic))
try:
    math.sqrt(-1)
except ValueError as error:
    print(error)
