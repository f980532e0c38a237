// Includes the host's list of users by climbing out of the work directory. Inside a sandbox there is a
// list too, but not that one.
#include "../../../../../../../../etc/passwd"

int main(void) {
    return 0;
}
