// A large sort, a stable one, orders of our own, and the order of keys.
let state = 12345n;
const numbers = new Float64Array(100000);
for (let index = 0; index < numbers.length; index++) {
  state = (state * 1103515245n + 12345n) % 2147483648n;
  numbers[index] = Number(state);
}
const sum = numbers.reduce((total, number) => total + number);
numbers.sort();
console.log(numbers.every((number, index) => index === 0 || numbers[index - 1] <= number), numbers.length);
console.log(sum === numbers.reduceRight((total, number) => total + number));

const people = [["Ada", 36], ["Bo", 24], ["Cy", 36], ["Di", 24], ["Ed", 30]];
const names = (list) => list.map(([name]) => name).join(" ");
console.log(names([...people].sort(([, a], [, b]) => a - b)));
console.log(names([...people].sort(([first, a], [second, b]) => b - a || second.localeCompare(first))));
console.log([10, 9, 1, 2].sort().join(), [10, 9, 1, 2].sort((a, b) => a - b).join());
console.log([3, undefined, 1, , 2].sort());
console.log(Object.keys({ b: 1, 2: 1, a: 1, 1: 1 }).join(), [...new Set([3, 1, 3, 2])].join());
console.log(["file10", "file9", "File1"].sort(new Intl.Collator("en", { numeric: true }).compare).join());
const groups = new Map();
for (const [name, age] of people) groups.set(age, [...(groups.get(age) ?? []), name]);
console.log(groups);
