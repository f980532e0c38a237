function digitSum(n: number): number {
  const digits: number[] = Array.from(String(n), Number);
  return digits.reduce((sum, digit) => sum + digit, 0);
}
