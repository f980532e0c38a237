#include <iostream>
#include "shop/prices.hpp"

int main() { std::cout << "total " << shop::total({3, 4}) << '\n'; }
