// Types that are computed, decorations of classes, overloads, and modules in directories.
import { Circle, Square, type Shape } from "./shapes/index";
import * as text from "./text";

type Getters<T> = { [K in keyof T & string as `get${Capitalize<K>}`]: () => T[K] };
function getters<T extends object>(target: T): Getters<T> {
  const made: Record<string, () => unknown> = {};
  for (const key of Object.keys(target)) made[`get${text.capitalise(key)}`] = () => target[key as keyof T];
  return made as Getters<T>;
}
const point = getters({ x: 3, label: "origin" });
console.log(point.getX() + 1, point.getLabel().length);

const shapes: Shape[] = [new Circle(1), new Square(2)];
console.log(shapes.map((shape) => `${shape.name} ${shape.area().toFixed(2)}`).join(", "));

function pick(index: number): string;
function pick(name: string): number;
function pick(key: number | string): string | number {
  return typeof key === "number" ? shapes[key]!.name : shapes.findIndex((shape) => shape.name === key);
}
console.log(pick(1), pick("circle"));

enum Level { Low = 1, High = Low << 3 }
const palette = { red: [255, 0, 0], name: "warm" } satisfies Record<string, number[] | string>;
console.log(Level[8], Level.High, palette.red.length, palette.name.toUpperCase());

class Temperature {
  static #made = 0;
  constructor(public readonly celsius: number) { Temperature.#made++; }
  get fahrenheit(): number { return this.celsius * 9 / 5 + 32; }
  static count(): number { return Temperature.#made; }
}
console.log(new Temperature(100).fahrenheit, Temperature.count());
const tuple: [name: string, ...scores: number[]] = ["Ada", 1, 2];
const [who, ...scores] = tuple;
console.log(who, scores, text.shout`very ${"loud"}`, ({ deep: { value: null } } as { deep?: { value: number | null } }).deep?.value ?? "nothing");
