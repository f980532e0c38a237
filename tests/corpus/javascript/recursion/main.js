// A recursion that is deep and allowed, one that has no end, and one without a stack.
const depth = (number) => (number === 0 ? 0 : 1 + depth(number - 1));
console.log(depth(5000));
try {
  depth(Infinity);
} catch (error) {
  console.log(error instanceof RangeError, error.message);
}

const isEven = (number) => (number === 0 ? true : isOdd(number - 1));
const isOdd = (number) => (number === 0 ? false : isEven(number - 1));
console.log(isEven(4000), isOdd(4000));

const trampoline = (step) => {
  while (typeof step === "function") step = step();
  return step;
};
const count = (number, sum = 0) => (number === 0 ? sum : () => count(number - 1, sum + 1));
console.log(trampoline(count(1000000)));

function* walk(tree) {
  if (!tree) return;
  yield* walk(tree.left);
  yield tree.value;
  yield* walk(tree.right);
}
const insert = (tree, value) => {
  if (!tree) return { value };
  const side = value < tree.value ? "left" : "right";
  return { ...tree, [side]: insert(tree[side], value) };
};
console.log([...walk([5, 2, 8, 1, 9, 3].reduce(insert, null))].join());
