const given: string[] = process.argv.slice(2);
console.log(given.join("|"));
