// Algorithms of the standard library with orders of our own.
#include <algorithm>
#include <compare>
#include <cstdint>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <vector>

struct Version {
    int major, minor;
    auto operator<=>(const Version&) const = default;
};

struct Person {
    std::string name;
    int age;
};

template <typename Range>
void show(const Range& people) {
    for (const auto& person : people) std::cout << person.name << ' ';
    std::cout << '\n';
}

int main() {
    std::uint32_t state = 12345;
    std::vector<std::uint32_t> numbers(300'000);
    std::generate(numbers.begin(), numbers.end(), [&] { return state = state * 1664525 + 1013904223; });
    auto sum = std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
    auto heap = numbers;
    std::sort(numbers.begin(), numbers.end());
    std::make_heap(heap.begin(), heap.end());
    std::sort_heap(heap.begin(), heap.end());
    std::cout << std::is_sorted(numbers.begin(), numbers.end()) << (heap == numbers) << (sum == std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0}))
              << std::binary_search(numbers.begin(), numbers.end(), state) << '\n';

    std::vector<Person> people{{"Ada", 36}, {"Bo", 24}, {"Cy", 36}, {"Di", 24}, {"Ed", 30}};
    std::stable_sort(people.begin(), people.end(), [](auto& left, auto& right) { return left.age < right.age; });
    show(people);
    std::sort(people.begin(), people.end(), [](auto& left, auto& right) { return std::tie(right.age, right.name) < std::tie(left.age, left.name); });
    show(people);
    auto middle = std::stable_partition(people.begin(), people.end(), [](auto& person) { return person.age < 30; });
    std::cout << middle - people.begin() << ' ';
    show(people);

    std::priority_queue<int, std::vector<int>, std::greater<>> queue(std::greater<>{}, {5, 2, 8, 1});
    for (; !queue.empty(); queue.pop()) std::cout << queue.top() << ' ';
    std::multiset<std::string, std::function<bool(const std::string&, const std::string&)>> words(
        [](auto& left, auto& right) { return left.size() < right.size(); });
    for (auto word : {"pear", "fig", "apple", "kiwi"}) words.insert(word);
    for (auto& word : words) std::cout << word << ' ';
    std::cout << (Version{1, 10} > Version{1, 9}) << (Version{2, 0} == Version{2, 0}) << '\n';
    std::vector<int> parts{9, 1, 8, 2, 7};
    std::nth_element(parts.begin(), parts.begin() + 2, parts.end());
    std::cout << parts[2] << ' ';
    std::string letters = "abc";
    int permutations = 0;
    do ++permutations; while (std::next_permutation(letters.begin(), letters.end()));
    std::vector<int> doubled{1, 1, 2, 3, 3};
    doubled.erase(std::unique(doubled.begin(), doubled.end()), doubled.end());
    std::cout << permutations << ' ' << doubled.size() << ' ' << *std::lower_bound(doubled.begin(), doubled.end(), 2) << '\n';
}
