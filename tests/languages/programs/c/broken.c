int main(void) {
    int number = 42;
    return number.text;
}
