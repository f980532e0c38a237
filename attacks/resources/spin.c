// title: Burns CPU time in one process
// how: An endless loop; it stops by itself after three seconds of CPU time, three times its limit. The
//   kernel would end a single process soon after the limit too.
// without: cpu-time, rlimits
// limits: cpu-time=1s timeout=20s
// expect: timeout
#include <stdio.h>
#include <time.h>

int main(void) {
    while (clock() < 3 * CLOCKS_PER_SEC) {
    }
    puts("BREACH three seconds of CPU time");
    return 0;
}
