# title: Allows itself an endless stack
# how: With the stack unlimited, the memory layout of what it starts becomes the predictable old one and
#   an argument list may take a quarter of whatever the stack may be. Only the limit is raised.
# without: rlimits
# expect: held
import resource

try:
    resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    print("BREACH the stack is unlimited")
except (OSError, ValueError) as error:
    print("HELD", error)
