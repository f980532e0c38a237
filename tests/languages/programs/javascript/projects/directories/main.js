const { total } = require("./shop/prices");

console.log("total", total([3, 4]));
