// Floating point as IEEE 754 has it: streams, limits, conversions, complex numbers.
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <complex>
#include <cstdint>
#include <iomanip>
#include <iostream>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

std::string shortest(double value) {
    char text[64];
    auto [end, error] = std::to_chars(text, text + sizeof text, value);
    return {text, end};
}

int main() {
    using limits = std::numeric_limits<double>;
    volatile double tenth = 0.1, zero = 0;
    std::cout << shortest(tenth + 0.2) << ' ' << shortest(1e16) << ' ' << shortest(limits::denorm_min()) << ' ' << shortest(limits::max()) << '\n';
    std::cout << 0.1 + 0.2 << ' ' << 1e6 << ' ' << 1e-5 << ' ' << std::fixed << std::setprecision(2) << 2.675 << ' ' << 0.125 << ' ' << std::scientific << 12345.678 << std::defaultfloat << std::setprecision(6) << '\n';
    double nan = zero / zero;
    std::cout << (nan == nan) << std::isnan(nan) << ' ' << std::isnan(nan - nan) << ' ' << 1 / zero << ' ' << -1 / zero << ' ' << std::max(1.0, nan) << ' ' << std::fmax(1.0, nan) << ' ' << std::signbit(-zero) << '\n';
    std::cout << std::round(-2.5) << ' ' << std::nearbyint(-2.5) << ' ' << static_cast<int>(-1.9) << ' ' << std::fmod(-7, 3) << ' ' << -7 % 3 << ' ' << std::remainder(-7, 4) << '\n';
    double sum = 0;
    float single = 0;
    for (int n = 1; n <= 1'000'000; ++n) {
        sum += 1.0 / n;
        single += 1.0f / static_cast<float>(n);
    }
    std::cout << shortest(sum) << ' ' << std::setprecision(8) << single << '\n';
    std::vector<double> tenths(10, 0.1);
    std::cout << shortest(std::accumulate(tenths.begin(), tenths.end(), 0.0)) << ' ' << std::midpoint(1.0, 4.0) << ' ' << std::lerp(10.0, 20.0, 0.25) << '\n';
    std::cout << std::hex << std::bit_cast<std::uint64_t>(1.5) << std::dec << ' ' << std::hexfloat << 0.1 << std::defaultfloat << ' ' << std::popcount(255u) << ' ' << std::countl_zero(1u) << '\n';
    double parsed = 0;
    std::string text = "2.5e3xyz";
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed);
    std::cout << parsed << ' ' << end << ' ' << (error == std::errc{}) << ' ' << std::stod("0x1.8p1") << '\n';
    using namespace std::complex_literals;
    std::cout << std::sqrt(std::complex<double>(-1)) << ' ' << (1.0 + 2i) * (3.0 - 1i) << ' ' << std::abs(3.0 + 4i) << '\n';
    std::cout << std::gcd(84, 36) << ' ' << std::lcm(4, 6) << ' ' << limits::digits10 << ' ' << static_cast<int>(std::numeric_limits<signed char>::min()) << ' ' << static_cast<unsigned char>(300) + 0 << '\n';
    std::vector<double> values{2.5, -limits::infinity(), 0.0, 1.5};
    std::sort(values.begin(), values.end());
    for (double value : values) std::cout << value << ' ';
    std::cout << '\n';
}
