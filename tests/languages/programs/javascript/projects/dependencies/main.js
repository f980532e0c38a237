const prices = require("prices");
const { format } = require("@shop/format");

async function main() {
  const list = await prices.list();
  console.log(format(prices.total(list)), require("./data.json").currency);
}

main();
