// Text in many scripts: code units and code points, normal forms, graphemes, the name of a file.
const fs = require("node:fs");

const input = fs.readFileSync(0, "utf8");
for (const line of input.trimEnd().split("\n")) {
  console.log(line.length, [...line].length, Buffer.byteLength(line), [...line].reverse().join(""));
}
const composed = "\u00e9";
const decomposed = composed.normalize("NFD");
console.log(composed === decomposed, composed === decomposed.normalize("NFC"), "ﬁ①".normalize("NFKC"));
console.log("straße".toUpperCase(), "ΑΣ".toLowerCase(), "I".toLocaleLowerCase("tr"));
const astronaut = "👩‍🚀";
console.log(astronaut.length, [...astronaut].length, [...new Intl.Segmenter().segment(astronaut)].length);
console.log(astronaut.codePointAt(0).toString(16), "\u{1f680}" === "\ud83d\ude80");
console.log("Ωmega жук 中文".match(/\p{Script=Cyrillic}+/u)[0], /^\p{Lu}/u.test("Ω"));
console.log(["ä", "z", "a"].sort().join(""), ["ä", "z", "a"].sort(new Intl.Collator("de").compare).join(""));
fs.writeFileSync("grüße-世界.txt", "Привет, мир\n");
console.log(fs.readdirSync(".").sort()[0], encodeURIComponent("ü/世"));
console.log(Buffer.from([0xff, 0x41]).toString(), new TextEncoder().encode("€"));
