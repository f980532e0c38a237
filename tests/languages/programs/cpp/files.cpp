#include <fstream>
#include <iterator>
#include <numeric>

int main() {
    std::ifstream in("in/numbers.txt");
    std::ofstream("sum.txt") << std::accumulate(std::istream_iterator<long>(in), {}, 0L) << '\n';
}
