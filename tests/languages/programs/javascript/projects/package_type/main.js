import { total } from "./prices.js";

await Promise.resolve();
console.log("total", total(3, 4), typeof require);
