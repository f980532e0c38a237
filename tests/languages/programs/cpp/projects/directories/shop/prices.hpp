#pragma once
#include <vector>

namespace shop {
int total(const std::vector<int>& prices);
}
