int main() {
    for (volatile bool on = true; on;) {}
}
