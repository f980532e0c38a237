// Sends itself a signal for which it has no handler.
const fs = require("node:fs");

fs.writeSync(1, "before\n");
process.kill(process.pid, "SIGTERM");
setInterval(() => {}, 1000);
