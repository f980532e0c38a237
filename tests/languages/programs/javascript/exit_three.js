console.log("before");
process.exitCode = 3;
