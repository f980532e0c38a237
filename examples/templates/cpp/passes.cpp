static int digit_sum(int n) {
    int total = 0;
    for (const char digit : std::to_string(n))
        total += digit - '0';
    return total;
}
