const lines = require("node:fs").readFileSync(0, "utf8").trim().split("\n");
console.log(lines.reduce((sum, line) => sum + Number(line), 0));
