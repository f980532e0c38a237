#include <fstream>
#include <iostream>
#include <string>

int main() {
    std::string line;
    std::getline(std::cin, line);
    std::cout << "grüße, 世界\n" << line << '\n';
    std::ofstream("ü-文.txt") << line << '\n';
}
