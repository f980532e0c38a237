// Handlers, their order, causes, rejected promises, and several errors at once.
class OutOfStock extends Error {
  constructor(count, options) {
    super(`${count} wanted`, options);
    this.name = "OutOfStock";
  }
}

function order() {
  try {
    try {
      null.property;
    } catch (error) {
      throw new OutOfStock(5, { cause: error });
    } finally {
      console.log("first finally");
    }
  } catch (error) {
    return `${error} because of ${error.cause.constructor.name}`;
  } finally {
    console.log("second finally");
  }
}
console.log(order());
const overrides = () => {
  try {
    return "from try";
  } finally {
    return "from finally";
  }
};
console.log(overrides());

async function main() {
  const settled = await Promise.allSettled([1, Promise.reject(new TypeError("no")), (async () => 3)()]);
  console.log(settled.map(({ status, value, reason }) => `${status} ${value ?? reason.message}`));
  try {
    await Promise.any([Promise.reject(new Error("a")), Promise.reject(new Error("b"))]);
  } catch (error) {
    console.log(error.name, error.errors.map((each) => each.message));
  }
  await Promise.reject("text").catch((reason) => console.log("caught", reason)).finally(() => console.log("done"));
  process.on("uncaughtException", (error, origin) => console.log(origin, error.message));
  setTimeout(() => { throw new OutOfStock(7); }, 1);
  setTimeout(() => console.error("went on"), 20);
}

main();
