// Orders that are composed from smaller ones, by generic functions.
type Order<T> = (left: T, right: T) => number;
const by = <T, K extends string | number>(key: (item: T) => K): Order<T> => (left, right) => {
  const [a, b] = [key(left), key(right)];
  return a < b ? -1 : a > b ? 1 : 0;
};
const reverse = <T>(order: Order<T>): Order<T> => (left, right) => order(right, left);
const then = <T>(...orders: Order<T>[]): Order<T> => (left, right) =>
  orders.reduce((result, order) => result || order(left, right), 0);

interface Book { title: string; year: number; pages: number }
const books: Book[] = [
  { title: "Delta", year: 1999, pages: 300 }, { title: "alpha", year: 2005, pages: 120 },
  { title: "Charlie", year: 1999, pages: 120 }, { title: "bravo", year: 2005, pages: 120 },
];
const titles = (order: Order<Book>): string => [...books].sort(order).map(({ title }) => title).join(" ");
console.log(titles(by((book) => book.title)));
console.log(titles(by((book) => book.title.toLowerCase())));
console.log(titles(then(reverse(by((book) => book.year)), by((book) => book.pages), reverse(by((book) => book.title)))));
console.log(titles(by((book) => book.pages)));

function mergeSort<T>(items: readonly T[], order: Order<T>): T[] {
  if (items.length < 2) return [...items];
  const middle = items.length >> 1;
  const [left, right] = [mergeSort(items.slice(0, middle), order), mergeSort(items.slice(middle), order)];
  const merged: T[] = [];
  let l = 0, r = 0;
  while (l < left.length || r < right.length) {
    const takeLeft = r >= right.length || (l < left.length && order(left[l]!, right[r]!) <= 0);
    merged.push(takeLeft ? left[l++]! : right[r++]!);
  }
  return merged;
}
let state = 7;
const numbers = Array.from({ length: 50000 }, () => (state = (state * 48271) % 2147483647));
const mine = mergeSort(numbers, (a, b) => a - b);
const theirs = [...numbers].sort((a, b) => a - b);
console.log(mine.length, mine.every((number, index) => number === theirs[index]), numbers[0], Math.min(...numbers) === mine[0]);
