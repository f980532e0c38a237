// title: Makes the assembler quote a host file
// how: .include reads a file as assembly; the assembler's complaint quotes it.
// without: fresh-root
// args-in-source: yes
// expect: compile_error
// breach: shows-host-secret
__asm__(".include \"{host_file}\"");

int main(void) {
    return 0;
}
