const fs = require("node:fs");

for (;;) fs.writeSync(1, "again and again\n");
