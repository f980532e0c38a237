import type { Shape } from "./index";

export class Square implements Shape {
  readonly name = "square";
  constructor(private readonly side: number) {}
  area(): number { return this.side ** 2; }
}
