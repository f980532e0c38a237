// Types and functions that refer to themselves: an expression tree, nested lists, a deep chain.
type Expression = number | { op: "+" | "*" | "-"; left: Expression; right: Expression };
const evaluate = (expression: Expression): number => {
  if (typeof expression === "number") return expression;
  const [left, right] = [evaluate(expression.left), evaluate(expression.right)];
  return expression.op === "+" ? left + right : expression.op === "-" ? left - right : left * right;
};
console.log(evaluate({ op: "*", left: { op: "+", left: 2, right: 3 }, right: { op: "-", left: 10, right: 4 } }));

type Nested<T> = T | Nested<T>[];
const flatten = <T>(nested: Nested<T>): T[] => (Array.isArray(nested) ? nested.flatMap((item) => flatten(item as Nested<T>)) : [nested]);
console.log(flatten<number>([1, [2, [3, [4]], []], 5]));

let chain: Expression = 0;
for (let depth = 0; depth < 3000; depth++) chain = { op: "+", left: chain, right: 1 };
console.log(evaluate(chain));

function* permutations<T>(items: readonly T[]): Generator<T[]> {
  if (items.length === 0) yield [];
  for (const [index, item] of items.entries()) {
    for (const rest of permutations(items.filter((_, other) => other !== index))) yield [item, ...rest];
  }
}
console.log([...permutations("abc".split(""))].map((letters) => letters.join("")).join(" "));

const bottomless = (): never => bottomless();
try {
  bottomless();
} catch (error) {
  console.log(error instanceof RangeError ? error.message : error);
}

function hanoi(disks: number, from = "A", to = "C", over = "B"): number {
  return disks === 0 ? 0 : hanoi(disks - 1, from, over, to) + 1 + hanoi(disks - 1, over, to, from);
}
console.log(hanoi(12));
