# title: Reaches the machine's memory, disks and kernel log as devices
# how: Opens the device files that give the whole machine away and, as none is there, makes them.
# without: none
# why-no-pair: making such a device needs a capability over the whole machine, which no sandbox can be
#   given without real danger.
# expect: held
import os
import stat
import sys

last = ""
for path in ("/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/sda", "/dev/vda",
             "/dev/nvme0n1", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/tty", "/dev/console",
             "/proc/kcore"):
    try:
        os.open(path, os.O_RDONLY)
        print("BREACH opened", path)
        sys.exit()
    except OSError as error:
        last = f"{path}: {error.strerror}"
for kind, major, minor in ((stat.S_IFCHR, 1, 1), (stat.S_IFBLK, 8, 0), (stat.S_IFBLK, 254, 0)):
    try:
        os.mknod("device", kind | 0o666, os.makedev(major, minor))
        print("BREACH made a device node", major, minor)
        sys.exit()
    except OSError as error:
        last = f"mknod: {error.strerror}"
print("HELD", last)
