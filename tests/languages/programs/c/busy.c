int main(void) {
    for (volatile int turns = 0;; turns ^= 1)
        ;
}
