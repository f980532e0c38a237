# title: Runs su, mount and passwd for their set-user-id bit
# how: The loader prints its AT_SECURE flag and user ids when asked, unless the program got privileges.
#   A program that got none shows the caller's id; without no-new-privileges only mount flags and the
#   id map are left to see to that, which counts as a breach.
# without: no-new-privs, landlock, seccomp
# expect: held
import ctypes
import os
import subprocess

PR_GET_NO_NEW_PRIVS = 39
flagged = ctypes.CDLL(None).prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
checked = []
for name in ("su", "mount", "umount", "passwd", "newgrp", "chsh", "sudo"):
    path = f"/usr/bin/{name}"
    if not os.path.exists(path) or not os.stat(path).st_mode & 0o4000:
        continue
    run = subprocess.run([path, "--version"], env={"LD_SHOW_AUXV": "1"}, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace")
    ids = [line.split()[1] for line in run.stdout.splitlines() if line.startswith("AT_EUID:")]
    if ids != [str(os.geteuid())]:
        print("BREACH", name, "ran with other rights")
        break
    checked.append(name)
else:
    print("HELD inert:" if flagged else "BREACH no flag makes inert:", " ".join(checked) or "(none here)")
