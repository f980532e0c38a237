// title: Includes the host's password file
// how: A compiler run as root outside a sandbox would print the hashes. "Permission denied" instead of
//   "no such file" already shows that the host's /etc is there.
// without: fresh-root
// expect: compile_error
// breach: shows Permission denied
#include "/etc/shadow"

int main(void) {
    return 0;
}
