// A table read from CSV, checked, summed up and written as a report; then binary data at positions.
import { promises as fs } from "node:fs";
import * as path from "node:path";

interface Row { city: string; year: number; rain: number }

function parse(line: string, number: number): Row {
  const [city, year, rain] = line.split(",");
  if (!city || !year || rain === undefined || Number.isNaN(Number(rain))) throw new SyntaxError(`line ${number}: '${line}'`);
  return { city, year: Number(year), rain: Number(rain) };
}

async function main(): Promise<void> {
  const rows: Row[] = [];
  const text = await fs.readFile("rain.csv", "utf8");
  for (const [index, line] of text.trimEnd().split("\n").slice(1).entries()) {
    try {
      rows.push(parse(line, index + 2));
    } catch (error) {
      console.log((error as Error).message);
    }
  }
  const sums: Record<string, number> = {};
  for (const { city, rain } of rows) sums[city] = (sums[city] ?? 0) + rain;
  await fs.mkdir("reports/2024", { recursive: true });
  await fs.writeFile("reports/2024/sums.json", JSON.stringify(sums, null, 2) + "\n");
  console.log(path.relative("reports", "reports/2024/sums.json"), (await fs.stat("reports/2024/sums.json")).size);

  const file = await fs.open("squares.bin", "w+");
  const squares = Uint32Array.from({ length: 256 }, (_, index) => index * index);
  await file.write(Buffer.from(squares.buffer));
  const one = Buffer.alloc(4);
  await file.read(one, 0, 4, 4 * 200);
  await file.truncate(100);
  console.log(one.readUInt32LE(), (await file.stat()).size);
  await file.close();
  await fs.unlink("squares.bin");
  console.log((await fs.readdir(".", { withFileTypes: true })).filter((entry) => entry.isDirectory() && entry.name === "reports").length);
}

void main();
