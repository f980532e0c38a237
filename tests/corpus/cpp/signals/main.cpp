// A guard that restores handlers, signals waited for in a thread, and a clean-up on the way out.
#include <atomic>
#include <csignal>
#include <iostream>
#include <pthread.h>
#include <thread>
#include <unistd.h>

volatile std::sig_atomic_t seen = 0;

class Handler {
public:
    Handler(int number, void (*action)(int)) : number(number), before(std::signal(number, action)) {}
    ~Handler() { std::signal(number, before); }
    Handler(const Handler&) = delete;
    Handler& operator=(const Handler&) = delete;

private:
    int number;
    void (*before)(int);
};

int main() {
    std::signal(SIGUSR1, [](int) { seen = seen + 100; });
    {
        Handler guard(SIGUSR1, [](int number) { seen = seen + number; });
        std::raise(SIGUSR1);
    }
    std::cout << seen << '\n';
    std::raise(SIGUSR1);
    std::cout << seen << '\n';

    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::thread waiter([&set] {
        for (int number = 0; number != SIGTERM;) {
            sigwait(&set, &number);
            std::cout << "took " << number << std::endl;
            if (number == SIGUSR2) kill(getpid(), SIGTERM);
        }
    });
    kill(getpid(), SIGUSR2);
    waiter.join();
    std::at_quick_exit([] { std::cout << "quick exit" << std::endl; });
    std::quick_exit(4);
}
