// Includes a device that never ends. A compiler that reads it to its end takes memory for ever.
#include "/dev/zero"

int main(void) {
    return 0;
}
