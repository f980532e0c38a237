// A little server of sums with a thread for each client, sockets as objects.
#include <arpa/inet.h>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

class Socket {
public:
    explicit Socket(int descriptor) : descriptor(descriptor) {}
    Socket(Socket&& other) noexcept : descriptor(std::exchange(other.descriptor, -1)) {}
    ~Socket() { if (descriptor >= 0) close(descriptor); }
    int get() const { return descriptor; }
    void send(const std::string& text) const {
        if (::send(descriptor, text.data(), text.size(), MSG_NOSIGNAL) < 0) std::cout << "not sent\n";
    }
    std::string line() const {
        std::string text;
        for (char letter; recv(descriptor, &letter, 1, 0) == 1 && letter != '\n';) text += letter;
        return text;
    }

private:
    int descriptor;
};

sockaddr_in loopback(in_port_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

int main() {
    Socket listener(socket(AF_INET, SOCK_STREAM, 0));
    auto address = loopback(0);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener.get(), generic, size) != 0 || listen(listener.get(), 8) != 0) return 1;
    getsockname(listener.get(), generic, &size);

    std::thread server([&] {
        std::vector<std::thread> clients;
        for (int count = 0; count < 3; ++count) {
            Socket peer(accept(listener.get(), nullptr, nullptr));
            clients.emplace_back([peer = std::move(peer)] {
                for (std::string line; !(line = peer.line()).empty();) {
                    std::istringstream words(line);
                    long sum = 0;
                    for (long number; words >> number;) sum += number;
                    peer.send(std::to_string(sum) + "\n");
                }
            });
        }
        for (auto& client : clients) client.join();
    });
    for (const char* question : {"1 2 3\n", "-5 5\n", "4000000000 4000000000\n"}) {
        Socket client(socket(AF_INET, SOCK_STREAM, 0));
        if (connect(client.get(), generic, size) != 0) return 2;
        client.send(question);
        std::cout << client.line() << '\n';
    }
    server.join();

    Socket refused(socket(AF_INET, SOCK_STREAM, 0));
    auto nobody = loopback(1);
    int result = connect(refused.get(), reinterpret_cast<sockaddr*>(&nobody), sizeof nobody);
    std::cout << result << ' ' << std::strerror(errno) << '\n';
    char text[INET6_ADDRSTRLEN];
    in6_addr six = in6addr_loopback;
    std::cout << inet_ntop(AF_INET6, &six, text, sizeof text) << ' ' << inet_ntoa(loopback(0).sin_addr) << '\n';
}
