// Threads that share by lock, by atomic, by condition and by future.
#include <atomic>
#include <condition_variable>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <numeric>
#include <queue>
#include <stdexcept>
#include <thread>
#include <vector>

template <typename T>
class Channel {
public:
    void send(T value) {
        std::unique_lock held(lock);
        changed.wait(held, [this] { return waiting.size() < 4; });
        waiting.push(std::move(value));
        changed.notify_all();
    }
    T receive() {
        std::unique_lock held(lock);
        changed.wait(held, [this] { return !waiting.empty(); });
        T value = std::move(waiting.front());
        waiting.pop();
        changed.notify_all();
        return value;
    }

private:
    std::mutex lock;
    std::condition_variable changed;
    std::queue<T> waiting;
};

int main() {
    std::map<int, int> counts;
    std::mutex lock;
    std::atomic<int> calls{0};
    std::vector<std::thread> threads;
    for (int worker = 0; worker < 6; ++worker)
        threads.emplace_back([&, worker] {
            for (int turn = 0; turn < 1000; ++turn) {
                ++calls;
                std::lock_guard held(lock);
                ++counts[worker % 4];
            }
        });
    for (auto& thread : threads) thread.join();
    std::cout << calls;
    for (auto [key, count] : counts) std::cout << ' ' << key << '=' << count;
    std::cout << '\n';

    Channel<int> channel;
    std::thread producer([&] { for (int number = 1; number <= 101; ++number) channel.send(number % 101); });
    int sum = 0;
    while (int number = channel.receive()) sum += number;
    producer.join();
    std::cout << sum << '\n';

    std::vector<std::future<long>> parts;
    for (long part = 0; part < 4; ++part)
        parts.push_back(std::async(std::launch::async, [part] {
            std::vector<long> numbers(250);
            std::iota(numbers.begin(), numbers.end(), part * 250 + 1);
            return std::inner_product(numbers.begin(), numbers.end(), numbers.begin(), 0L);
        }));
    std::cout << std::accumulate(parts.begin(), parts.end(), 0L, [](long total, auto& part) { return total + part.get(); }) << '\n';
    auto failing = std::async(std::launch::async, []() -> int { throw std::out_of_range("in a thread"); });
    try {
        failing.get();
    } catch (const std::out_of_range& error) {
        std::cout << error.what() << '\n';
    }
    std::once_flag flag;
    for (int turn = 0; turn < 3; ++turn) std::call_once(flag, [] { std::cout << "once\n"; });
}
