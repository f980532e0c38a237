// title: Includes a host file to read it in the error message
// how: The compiler quotes the line it does not understand, which is the file's content.
// without: fresh-root
// args-in-source: yes
// expect: compile_error
// breach: shows-host-secret
#include "{host_file}"

int main(void) {
    return 0;
}
