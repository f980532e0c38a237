import * as fs from "node:fs";

const lines: string[] = fs.readFileSync(0, "utf8").trim().split("\n");
console.log(lines.reduce((sum: number, line: string) => sum + Number(line), 0));
