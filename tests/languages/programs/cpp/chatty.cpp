#include <iostream>

int main() {
    for (;;) std::cout << "again and again\n";
}
