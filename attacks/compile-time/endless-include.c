// title: Includes a file that never ends
// how: The compiler reads a whole file before it looks at it, and the random device has no end. With
//   memory unlimited only the clock ends it.
// without: memory
// limits: compile-memory=64M compile-timeout=4s
// expect: memory_limit
// breach: timeout
#include "/dev/urandom"

int main(void) {
    return 0;
}
