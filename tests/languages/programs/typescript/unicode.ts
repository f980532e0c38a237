import * as fs from "node:fs";

const line: string = fs.readFileSync(0, "utf8");
process.stdout.write("grüße, 世界\n" + line);
fs.writeFileSync("ü-文.txt", line);
