// A child as an object that is always waited for; pipelines; deaths.
#include <csignal>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <sys/wait.h>
#include <system_error>
#include <unistd.h>
#include <vector>

class Child {
public:
    explicit Child(std::vector<std::string> command, const std::string& input = "") {
        int in[2], out[2];
        if (pipe(in) != 0 || pipe(out) != 0) throw std::system_error(errno, std::generic_category());
        process = fork();
        if (process == 0) {
            dup2(in[0], 0);
            dup2(out[1], 1);
            for (int end : {in[0], in[1], out[0], out[1]}) close(end);
            std::vector<char*> arguments;
            for (auto& word : command) arguments.push_back(word.data());
            arguments.push_back(nullptr);
            execvp(arguments[0], arguments.data());
            _exit(127);
        }
        close(in[0]);
        close(out[1]);
        if (write(in[1], input.data(), input.size()) < 0) std::cout << "not written\n";
        close(in[1]);
        output = out[0];
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;
    ~Child() {
        close(output);
        if (!waited) kill(process, SIGKILL), wait();
    }
    std::string read() {
        std::string text;
        char part[256];
        for (ssize_t size; (size = ::read(output, part, sizeof part)) > 0;) text.append(part, static_cast<size_t>(size));
        return text;
    }
    int wait() {
        int status = 0;
        waitpid(process, &status, 0);
        waited = true;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    }

private:
    pid_t process = -1;
    int output = -1;
    bool waited = false;
};

int main() {
    Child upper({"tr", "a-z", "A-Z"}, "shout");
    std::cout << upper.read() << ' ' << upper.wait() << '\n';
    std::cout << Child({"/bin/sh", "-c", "exit 7"}).wait() << ' ' << Child({"/bin/sh", "-c", "kill -TERM $$"}).wait() << ' '
              << Child({"/no/such/program"}).wait() << '\n';
    std::istringstream numbers(Child({"sort", "-n"}, "10\n9\n2\n").read());
    for (int number; numbers >> number;) std::cout << number << ' ';
    std::cout << std::endl;
    { Child slow({"sleep", "60"}); }
    std::cout << "nobody left: " << (waitpid(-1, nullptr, 0) == -1 && errno == ECHILD) << '\n';
    std::unique_ptr<FILE, int (*)(FILE*)> piped(popen("seq 1 100 | wc -l", "r"), pclose);
    int lines = 0;
    if (fscanf(piped.get(), "%d", &lines) == 1) std::cout << lines << std::endl;
    return std::system("exit 5") == 5 << 8 ? 0 : 1;
}
