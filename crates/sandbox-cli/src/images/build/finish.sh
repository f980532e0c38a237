# What is done to a root file system before it becomes a layer. Argument: the root. Run by `sh -c`; the host's own files
# are mounted at dev, proc and sys of the root, which nothing here may touch.
set -eu
cd "$1"

# Toolchains that are not Debian's: their programs, where recipes look for programs. What a package brought stays. Scripts
# in wheels do not find the rest of them, because wheels have no links.
link() { if ! [ -e "usr/bin/${1##*/}" ]; then ln -s "/$1" usr/bin/; fi; }
for program in opt/sandbox-run/toolchains/*/*/bin/*; do
    if [ -x "$program" ] && [ "$(head -c 4 "$program" | tail -c 3)" = ELF ]; then link "$program"; fi
done
for program in opt/sandbox-run/toolchains/*/node_modules/.bin/*; do
    if [ -x "$program" ]; then link "$program"; fi
done

# What only building needed, and what it took from the host: mirrors may have passwords in their names.
rm -rf etc/apt/sources.list etc/apt/sources.list.d etc/apt/apt.conf.d etc/apt/trusted.gpg.d etc/apt/auth.conf.d
rm -rf etc/dpkg/dpkg.cfg.d/99mmdebstrap etc/resolv.conf etc/hostname var/lib/apt var/lib/dpkg/*-old
rm -f usr/sbin/policy-rc.d
if [ -e sbin/start-stop-daemon.REAL ]; then mv -f sbin/start-stop-daemon.REAL sbin/start-stop-daemon; fi
find var/cache var/log tmp run -mindepth 1 ! -type d -delete

# What nobody reads in a sandbox. Copyright files stay, as their licences want it.
find usr/share/doc -mindepth 1 ! -type d ! -name copyright -delete
find usr/share/doc -mindepth 1 -type d -empty -delete
rm -rf usr/share/man usr/share/info usr/share/locale usr/share/lintian

# The same packages make the same image, whenever it is built: nothing tells of today.
if [ -e etc/machine-id ]; then rm etc/machine-id && : >etc/machine-id; fi
rm -f etc/passwd- etc/group- etc/shadow- etc/gshadow- etc/subuid- etc/subgid- var/lib/dbus/machine-id
if [ -e etc/shadow ]; then sed -i 's/^\([^:]*:[^:]*\):[0-9]*:/\1:0:/' etc/shadow; fi
# What came in packages keeps its time, which caches of bytecode and classes compare. What was made here gets that of
# the newest of them.
of_image() { find . -path ./dev -prune -o -path ./proc -prune -o -path ./sys -prune -o "$@"; }
newest=$(of_image ! -newermt "@$SANDBOX_RUN_STARTED" -printf '%Ts\n' | sort -n | tail -n 1)
of_image -newermt "@$SANDBOX_RUN_STARTED" -exec touch --no-dereference --date="@$newest" {} +
