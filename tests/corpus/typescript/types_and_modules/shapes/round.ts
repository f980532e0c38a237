import type { Shape } from "./index";

export class Circle implements Shape {
  readonly name = "circle";
  constructor(private readonly radius: number) {}
  area(): number { return Math.PI * this.radius ** 2; }
}
