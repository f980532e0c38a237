# title: Has the same user ids as the host
# how: Without a map of its own, user 1000 inside is user 1000 outside, and root inside is root outside:
#   any file or process that gets through belongs to the program.
# without: none
# why-no-pair: every other protection is set up with the privileges that the user namespace gives; without it there
#   is nothing to try the attack in.
# expect: held
lines = [tuple(map(int, line.split())) for line in open("/proc/self/uid_map")]
if any(inside == outside and length > 65536 for inside, outside, length in lines):
    print("BREACH ids inside are ids outside")
else:
    print("HELD mapped:", lines)
