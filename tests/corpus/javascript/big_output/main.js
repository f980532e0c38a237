// Half a megabyte through a stream that says when it is full.
const { once } = require("node:events");

async function main() {
  for (let number = 0; number < 10000; number++) {
    const square = String(number * number).padStart(9, "0");
    const line = `${String(number).padStart(5, "0")} ${"abcdefghij".repeat(4)} ${square}\n`;
    if (!process.stdout.write(line)) await once(process.stdout, "drain");
  }
}

main();
