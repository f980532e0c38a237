// Half a megabyte through a stream with manipulators.
#include <iomanip>
#include <iostream>
#include <string>

int main() {
    std::ios::sync_with_stdio(false);
    std::cout << std::setfill('0');
    const std::string middle = "abcdefghijabcdefghijabcdefghijabcdefghij";
    for (int number = 0; number < 10'000; ++number)
        std::cout << std::setw(5) << number << ' ' << middle << ' ' << std::setw(9) << number * number << '\n';
}
