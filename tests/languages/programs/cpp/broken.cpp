#include <string>
int main() {
    std::string text = 42;
    return text.size();
}
