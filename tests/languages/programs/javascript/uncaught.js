console.log("before");
throw new Error("out of stock");
