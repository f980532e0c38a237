function digitSum(n) {
  return [...String(n)].map(Number).reduce((sum, digit) => sum + digit, 0);
}
