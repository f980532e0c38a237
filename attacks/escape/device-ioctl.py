# title: Sends a control request to a device
# how: Even a harmless device file leads to its driver's ioctl code. RNDGETENTCNT on /dev/urandom changes
#   nothing and needs no privilege, so only the rule on device requests can refuse it.
# without: landlock-ioctl
# expect: held
import fcntl

RNDGETENTCNT = 0x80045200

try:
    with open("/dev/urandom", "rb") as device:
        fcntl.ioctl(device, RNDGETENTCNT, bytes(4))
    print("BREACH the driver answered a control request")
except OSError as error:
    print("HELD ioctl:", error.strerror)
