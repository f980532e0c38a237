import * as fs from "node:fs";

for (;;) fs.writeSync(1, "again and again\n");
