// Loops while compiling. The compiler has a bound for the iterations of one loop and for the operations
// of one evaluation, so this asks for a great many evaluations, each just below the bounds.
#include <utility>

constexpr unsigned spin(unsigned seed) {
    unsigned value = seed;
    for (unsigned outer = 0; outer < 200; ++outer)
        for (unsigned inner = 0; inner < 20000; ++inner)
            value = value * 1664525u + inner;
    return value;
}

template <unsigned... seeds>
constexpr unsigned all(std::integer_sequence<unsigned, seeds...>) {
    constexpr unsigned values[] = {std::integral_constant<unsigned, spin(seeds)>::value...};
    return values[0];
}

int main() {
    return all(std::make_integer_sequence<unsigned, 5000>{}) == 0;
}
