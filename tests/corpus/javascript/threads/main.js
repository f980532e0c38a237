// Worker threads that share memory, and one that sends messages.
const { Worker, isMainThread, parentPort, workerData } = require("node:worker_threads");

if (!isMainThread) {
  const counter = new Int32Array(workerData.shared);
  for (let turn = 0; turn < 10000; turn++) Atomics.add(counter, 0, 1);
  let sum = 0;
  for (const value of workerData.numbers) sum += value * value;
  parentPort.postMessage({ name: workerData.name, sum });
} else {
  const shared = new SharedArrayBuffer(4);
  const start = (name, numbers) =>
    new Promise((resolve, reject) => {
      const worker = new Worker(__filename, { workerData: { name, numbers, shared } });
      let answer;
      worker.on("message", (message) => (answer = message));
      worker.on("error", reject);
      worker.on("exit", (code) => resolve({ ...answer, code }));
    });
  (async () => {
    const answers = await Promise.all([start("a", [1, 2, 3]), start("b", [10, 20]), start("c", [])]);
    for (const answer of answers) console.log(answer);
    console.log("counted", new Int32Array(shared)[0]);
    const failing = new Worker("throw new RangeError('inside')", { eval: true });
    failing.on("error", (error) => console.log(error.name, error.message));
    failing.on("exit", (code) => console.log("ended with", code));
  })();
}
