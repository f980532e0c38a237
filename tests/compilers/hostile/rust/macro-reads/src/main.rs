// Prints what the macro found out.
fn main() {
    print!("{}", thief::loot!());
}
