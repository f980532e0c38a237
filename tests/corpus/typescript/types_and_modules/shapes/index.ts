export interface Shape {
  readonly name: string;
  area(): number;
}
export { Circle } from "./round";
export { Square } from "./straight";
