// The program is harmless; see tsconfig.json.
console.log("compiled");
