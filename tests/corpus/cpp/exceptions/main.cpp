// Handlers, unwinding, nested causes, rethrowing, what a constructor leaves when it throws.
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

struct Loud {
    explicit Loud(std::string name) : name(std::move(name)) { std::cout << "+" << this->name << ' '; }
    ~Loud() { std::cout << "-" << name << ' '; }
    std::string name;
};

struct OutOfStock : std::runtime_error {
    explicit OutOfStock(int wanted) : std::runtime_error(std::to_string(wanted) + " wanted"), wanted(wanted) {}
    int wanted;
};

struct Shop {
    Loud first{"first"};
    Loud second{"second"};
    explicit Shop(int stock) {
        if (stock == 0) throw OutOfStock(5);
    }
    ~Shop() { std::cout << "never built "; }
};

void explain(const std::exception& error, int level = 0) {
    std::cout << std::string(level * 2, ' ') << error.what() << '\n';
    try {
        std::rethrow_if_nested(error);
    } catch (const std::exception& nested) {
        explain(nested, level + 1);
    }
}

int order(int count) try {
    Loud paper("paper");
    if (count > 3) throw OutOfStock(count);
    return count;
} catch (const OutOfStock&) {
    std::throw_with_nested(std::logic_error("the order failed"));
}

int main() {
    try {
        Shop shop(0);
    } catch (const OutOfStock& error) {
        std::cout << error.wanted << '\n';
    }
    try {
        std::cout << order(2) << ' ' << order(5);
    } catch (const std::exception& error) {
        explain(error);
    }
    try {
        std::cout << std::vector<int>(3).at(7);
    } catch (const std::out_of_range& error) {
        std::cout << "out of range\n";
    }
    std::exception_ptr kept;
    try {
        throw 42;
    } catch (...) {
        kept = std::current_exception();
    }
    try {
        std::rethrow_exception(kept);
    } catch (int number) {
        std::cout << number << '\n';
    }
    try {
        std::get<int>(std::variant<int, std::string>("text"));
    } catch (const std::bad_variant_access& error) {
        std::cout << "wrong alternative\n";
    }
    try {
        volatile std::size_t much = static_cast<std::size_t>(-1) / 4;
        std::unique_ptr<char[]> all(new char[much]);
        all[much / 2] = 'x';
        std::cout << all[much / 2] << " granted\n";
    } catch (const std::bad_alloc&) {
        std::cout << "bad alloc\n";
    }
    std::cout << std::uncaught_exceptions() << noexcept(order(1)) << '\n';
}
