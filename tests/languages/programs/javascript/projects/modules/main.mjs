import { readFile } from "node:fs/promises";
import { total } from "./shop/prices.mjs";
import names from "./shop/names.cjs";

const text = await readFile(new URL("prices.json", import.meta.url), "utf8");
console.log("total", total(JSON.parse(text)), names.join());
