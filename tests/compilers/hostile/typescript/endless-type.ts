// A type that needs a longer one of itself, along two ways at each step. The compiler has bounds for the
// depth of this and for the number of instances of one expression, so there are many expressions.
type Longer<T extends unknown[]> = [...T, T["length"]];
type Tree<N extends unknown[], Path extends string> = N["length"] extends 40
    ? Path
    : Tree<Longer<N>, `${Path}0`> | Tree<Longer<N>, `${Path}1`>;

const leaf: Tree<[], ""> = "0";
console.log(leaf);
