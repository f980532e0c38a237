const fs = require("node:fs");

const numbers = fs.readFileSync("in/numbers.txt", "utf8").trim().split("\n").map(Number);
fs.writeFileSync("sum.txt", `${numbers.reduce((a, b) => a + b)}\n`);
