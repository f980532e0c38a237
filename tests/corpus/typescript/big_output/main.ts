// Half a megabyte from a generator, through a pipeline of streams.
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

function* lines(count: number): Generator<string> {
  for (let number = 0; number < count; number++) {
    const square = String(number * number).padStart(9, "0");
    yield `${String(number).padStart(5, "0")} ${"abcdefghij".repeat(4)} ${square}\n`;
  }
}

void pipeline(Readable.from(lines(10000)), process.stdout);
