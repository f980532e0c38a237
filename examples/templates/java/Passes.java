static int digitSum(int n) {
    return String.valueOf(n).chars().map(digit -> digit - '0').sum();
}
