function digitSum(n) {
  return n.split("").length;
}
