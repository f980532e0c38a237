#include "prices.hpp"
#include <numeric>

int shop::total(const std::vector<int>& prices) { return std::accumulate(prices.begin(), prices.end(), 0); }
