console.log("before");
const fail = (): never => { throw new Error("out of stock"); };
fail();
