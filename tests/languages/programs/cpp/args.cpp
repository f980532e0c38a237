#include <iostream>

int main(int count, char** arguments) {
    for (int at = 1; at < count; ++at) std::cout << (at == 1 ? "" : "|") << arguments[at];
    std::cout << '\n';
}
