# title: Allows itself a giant core dump
# how: A crash would then write its whole memory out, by way of whatever program the host has set up for
#   core dumps. Only the limit is raised; nothing crashes.
# without: rlimits
# expect: held
import resource

try:
    resource.setrlimit(resource.RLIMIT_CORE, (1 << 30, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    print("BREACH core dumps of a gigabyte are allowed")
except (OSError, ValueError) as error:
    print("HELD", error)
