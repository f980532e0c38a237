static int digit_sum(int n) {
    int total = 0;
    for (; n > 0; n /= 10)
        total += n % 10;
    return total;
}
