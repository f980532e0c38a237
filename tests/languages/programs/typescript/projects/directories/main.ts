import { total } from "./shop/prices";
import type { Price } from "./shop/types";

const prices: Price[] = [{ amount: 3 }, { amount: 4 }];
console.log("total", total(prices));
