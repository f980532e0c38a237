// Recursion in functions, in lambdas, in templates, in types, and on two stacks.
#include <array>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <pthread.h>
#include <utility>
#include <variant>
#include <vector>

long depth(long number) {
    volatile long frame[4] = {number};
    return number == 0 ? 0 : 1 + depth(frame[0] - 1);
}

template <unsigned N>
struct Factorial {
    static constexpr unsigned long value = N * Factorial<N - 1>::value;
};
template <>
struct Factorial<0> {
    static constexpr unsigned long value = 1;
};

constexpr unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
static_assert(fibonacci(20) == 6765);

struct Node;
using Expression = std::variant<int, std::unique_ptr<Node>>;
struct Node {
    char operation;
    Expression left, right;
};
Expression node(char operation, Expression left, Expression right) {
    return std::make_unique<Node>(Node{operation, std::move(left), std::move(right)});
}
int evaluate(const Expression& expression) {
    if (const int* number = std::get_if<int>(&expression)) return *number;
    const auto& [operation, left, right] = *std::get<1>(expression);
    return operation == '+' ? evaluate(left) + evaluate(right) : evaluate(left) * evaluate(right);
}

int main() {
    std::cout << depth(50'000) << ' ' << Factorial<20>::value << ' ' << evaluate(node('*', node('+', 2, 3), 6)) << '\n';
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 128 << 20);
    pthread_t thread;
    long result = 0;
    pthread_create(&thread, &attributes, [](void* place) -> void* { *static_cast<long*>(place) = depth(800'000); return nullptr; }, &result);
    pthread_join(thread, nullptr);
    std::cout << result << '\n';

    std::map<std::pair<size_t, int>, long> known;
    std::vector<int> coins{100, 50, 20, 10, 5, 2, 1};
    std::function<long(size_t, int)> ways = [&](size_t first, int amount) -> long {
        if (amount == 0) return 1;
        if (amount < 0 || first == coins.size()) return 0;
        auto [place, fresh] = known.try_emplace({first, amount}, 0);
        if (fresh) place->second = ways(first, amount - coins[first]) + ways(first + 1, amount);
        return place->second;
    };
    std::cout << ways(0, 100) << ' ';
    auto hanoi = [](auto&& self, int disks) -> int { return disks == 0 ? 0 : 2 * self(self, disks - 1) + 1; };
    std::cout << hanoi(hanoi, 12) << '\n';

    std::array<int, 8> columns{};
    std::function<int(int)> queens = [&](int row) {
        if (row == 8) return 1;
        int found = 0;
        for (int column = 0; column < 8; ++column) {
            bool free = true;
            for (int other = 0; other < row && free; ++other)
                free = columns[other] != column && std::abs(columns[other] - column) != row - other;
            if (free) columns[row] = column, found += queens(row + 1);
        }
        return found;
    };
    std::cout << queens(0) << '\n';
}
