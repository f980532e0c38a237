// Text and binary files, positions, directories, streams, compression, a temporary directory.
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");
const zlib = require("node:zlib");
const readline = require("node:readline");
const { pipeline } = require("node:stream/promises");

async function main() {
  fs.mkdirSync("data/deep/er", { recursive: true });
  fs.writeFileSync("data/notes.txt", "one\ntwo\nthree\n");
  fs.appendFileSync("data/notes.txt", "four\n");
  const lines = [];
  for await (const line of readline.createInterface({ input: fs.createReadStream("data/notes.txt") })) lines.push(line);
  console.log(lines);

  const file = fs.openSync("data/deep/records.bin", "w+");
  const record = Buffer.alloc(12);
  for (let number = 0; number < 100; number++) {
    record.writeUInt32LE(number, 0);
    record.writeDoubleLE(number / 4, 4);
    fs.writeSync(file, record);
  }
  fs.readSync(file, record, 0, 12, 12 * 42);
  console.log(record.readUInt32LE(0), record.readDoubleLE(4), fs.fstatSync(file).size);
  fs.closeSync(file);

  await pipeline(fs.createReadStream("data/notes.txt"), zlib.createGzip(), fs.createWriteStream("data/notes.gz"));
  console.log(zlib.gunzipSync(fs.readFileSync("data/notes.gz")).toString().length);

  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), "corpus-"));
  // A temporary directory may be on another device, where renaming ends.
  fs.copyFileSync("data/notes.gz", path.join(temporary, "moved.gz"));
  fs.unlinkSync("data/notes.gz");
  console.log(fs.readdirSync(temporary), fs.existsSync("data/notes.gz"));
  fs.rmSync(temporary, { recursive: true });

  fs.symlinkSync("notes.txt", "data/link");
  console.log(fs.readdirSync("data", { recursive: true }).sort(), fs.readlinkSync("data/link"));
  fs.rmSync("data", { recursive: true });
  await fs.promises.writeFile("result.json", JSON.stringify({ kept: [1, 2.5, null, true] }));
  fs.readFile("data/notes.txt", (error) => console.log(error.code));
}

main();
