// Writes where nothing is.
#include <iostream>

struct Loud {
    ~Loud() { std::cout << "never printed" << std::endl; }
};

int main(int count, char**) {
    Loud loud;
    std::cout << "before" << std::endl;
    volatile int* nowhere = nullptr;
    nowhere[count] = 1;
}
