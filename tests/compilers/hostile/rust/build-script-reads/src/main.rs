// Prints what the build script found out.
fn main() {
    print!("{}", include_str!(concat!(env!("OUT_DIR"), "/loot")));
}
