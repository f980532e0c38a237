// title: Makes the compiler quote a host file as its own source
// how: A line marker claims that the text comes from another file; to show where an error is, the
//   compiler opens that file and prints the line.
// without: fresh-root
// args-in-source: yes
// expect: compile_error
// breach: shows-host-secret
# 1 "{host_file}"
this is an error on the first line
