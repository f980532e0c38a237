// title: Prints byte by byte
// how: Every write costs the reader a wake-up and, if it is careless, a record of its own. It stops at
//   128 KiB.
// without: output
// limits: output=64K
// expect: output_limit
#include <stdio.h>
#include <unistd.h>

int main(void) {
    for (int count = 0; count < 128 * 1024; count++)
        if (write(1, count % 80 ? "x" : "\n", 1) != 1)
            return 1;
    puts("\nBREACH 128 KiB byte by byte");
    return 0;
}
