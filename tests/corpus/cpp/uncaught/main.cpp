// An exception that nobody catches.
#include <iostream>
#include <stdexcept>

int order(int count) {
    if (count > 3) throw std::runtime_error("5 wanted");
    return count;
}

int main() {
    std::cout << order(2) << std::endl;
    std::cout << order(5) << std::endl;
}
