// Templates, concepts, moves, polymorphism, operators, ranges of our own, in two sources and a header.
#include <concepts>
#include <coroutine>
#include <exception>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include "shapes.hpp"

template <typename T>
concept Number = std::integral<T> || std::floating_point<T>;
template <Number... Ts>
auto sum(Ts... values) { return (values + ... + 0); }

template <typename T>
std::string kind() {
    if constexpr (std::is_pointer_v<T>) return kind<std::remove_pointer_t<T>>() + "*";
    else if constexpr (std::is_same_v<T, int>) return "int";
    else return "other";
}

template <typename T>
struct Generator {
    struct promise_type {
        T value{};
        Generator get_return_object() { return Generator{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(T next) { value = next; return {}; }
        void return_void() {}
        void unhandled_exception() { std::terminate(); }
    };
    explicit Generator(std::coroutine_handle<promise_type> handle) : handle(handle) {}
    Generator(const Generator&) = delete;
    Generator& operator=(const Generator&) = delete;
    ~Generator() { handle.destroy(); }
    std::optional<T> next() {
        handle.resume();
        return handle.done() ? std::nullopt : std::optional(handle.promise().value);
    }
    std::coroutine_handle<promise_type> handle;
};
Generator<int> countdown(int from) {
    while (from > 0) co_yield from--;
}

struct Traced {
    Traced() { std::cout << "made "; }
    Traced(const Traced&) { std::cout << "copied "; }
    Traced(Traced&&) noexcept { std::cout << "moved "; }
    ~Traced() { std::cout << "gone "; }
};

class Matrix {
public:
    constexpr Matrix(long a, long b, long c, long d) : cells{a, b, c, d} {}
    constexpr Matrix operator*(const Matrix& other) const {
        const auto& [a, b, c, d] = cells;
        const auto& [e, f, g, h] = other.cells;
        return {a * e + b * g, a * f + b * h, c * e + d * g, c * f + d * h};
    }
    constexpr long operator[](std::size_t at) const { return cells[at]; }

private:
    long cells[4];
};
constexpr Matrix power(Matrix base, int exponent) { return exponent == 1 ? base : base * power(base, exponent - 1); }
static_assert(power({1, 1, 1, 0}, 10)[1] == 55);

long total(std::span<const int> numbers) {
    long result = 0;
    for (int number : numbers) result += number;
    return result;
}

int main() {
    std::cout << sum(1, 2.5, 3L) << ' ' << sum() << ' ' << kind<int**>() << ' ' << power({1, 1, 1, 0}, 50)[1] << '\n';
    {
        Traced first;
        auto second = std::move(first);
        std::vector<Traced> several;
        several.reserve(2);
        several.push_back(second);
        several.emplace_back();
    }
    std::cout << '\n';
    std::vector<std::unique_ptr<Shape>> shapes;
    shapes.push_back(circle(1));
    shapes.push_back(square(2));
    for (const auto& shape : shapes) std::cout << shape->name() << ' ' << shape->area() << ' ';
    shapes.clear();
    std::cout << "left " << Shape::alive() << '\n';
    auto generator = countdown(3);
    while (auto number = generator.next()) std::cout << *number << ' ';
    auto shared = std::make_shared<int>(7);
    std::weak_ptr<int> weak = shared;
    auto [count, before] = std::tuple(shared.use_count(), weak.expired());
    shared.reset();
    int numbers[] = {1, 2, 3};
    std::cout << count << before << weak.expired() << ' ' << total(numbers) << ' ' << [n = 5]() mutable { return n += 1; }() << '\n';
}
