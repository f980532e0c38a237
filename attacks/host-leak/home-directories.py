# title: Looks into the directories of users and services
# how: /home, /root, /var, /run and the like hold keys, mail, sockets and data; none may be there.
# without: fresh-root
# expect: held
import os

places = ("/home", "/root", "/var", "/run", "/srv", "/mnt", "/sys", "/boot")
# An empty directory made as a mount point tells nothing of the host; names in it would.
telling = []
for path in places:
    try:
        if os.listdir(path):
            telling.append(path)
    except PermissionError:
        telling.append(path)
    except FileNotFoundError:
        pass
if telling:
    print("BREACH the host shows through", *telling)
else:
    print("HELD no host directory is there")
