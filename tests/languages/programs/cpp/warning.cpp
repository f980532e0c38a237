#include <iostream>

[[deprecated("forgotten_value")]] int old() { return 0; }

int main() {
    std::cout << "hello, world\n";
    return old();
}
