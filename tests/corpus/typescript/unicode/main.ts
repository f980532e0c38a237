// Words counted in several scripts, with names in the source that are not ASCII either.
import * as fs from "node:fs";

const größe = (text: string): number => [...new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)].length;

function wordCount(text: string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const [word] of text.normalize("NFC").toLowerCase().matchAll(/\p{L}+/gu)) {
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return counts;
}

const input = fs.readFileSync(0, "utf8");
console.log([...wordCount(input)].sort(([a], [b]) => (a < b ? -1 : 1)));
const flag = "🇩🇪";
console.log(flag.length, [...flag].length, größe(flag), größe("e\u0301te\u0301"));
const enum Zeichen { Alpha = "α", Omega = "ω" }
console.log(Zeichen.Alpha + Zeichen.Omega, `${Zeichen.Omega}`.toUpperCase().charCodeAt(0));
fs.mkdirSync("ordner-é");
fs.writeFileSync("ordner-é/文件.txt", "内容\n");
console.log(fs.readdirSync("ordner-é"), Buffer.from("文").toString("hex"), JSON.stringify("\ud800"));
