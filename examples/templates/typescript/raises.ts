function digitSum(n: number): number {
  throw new RangeError(`${n} has too many digits`);
}
