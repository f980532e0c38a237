// A promise that is rejected and that nobody looks at.
process.on("exit", (code) => console.log("exit", code));

async function order(count) {
  if (count > 3) throw new RangeError(`${count} wanted`);
  return count;
}

order(2).then((count) => {
  console.log(count);
  order(5);
});
