// A type that needs two longer ones of itself at each step. The compiler's bound on depth is not reached, and
// there are two to the power of forty of them.
type Longer<T extends unknown[]> = [...T, T["length"]];
type Tree<N extends unknown[], Path extends string> = N["length"] extends 40
    ? Path
    : Tree<Longer<N>, `${Path}0`> | Tree<Longer<N>, `${Path}1`>;

const leaf: Tree<[], ""> = "0";
console.log(leaf);
