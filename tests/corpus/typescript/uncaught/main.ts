// An error that nobody catches, thrown from inside a typed collection.
class Bounded<T> {
  private readonly items: T[] = [];
  constructor(private readonly most: number) {}
  add(item: T): this {
    if (this.items.length === this.most) throw new RangeError(`more than ${this.most} items`);
    this.items.push(item);
    return this;
  }
}

const pair = new Bounded<string>(2).add("left").add("right");
console.log(JSON.stringify(pair));
process.exitCode = 9;
pair.add("wrong");
console.log("never printed");
