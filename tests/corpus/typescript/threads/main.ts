// A typed pool of worker threads that computes primes in parts.
import { Worker } from "node:worker_threads";

interface Part { from: number; to: number }
interface Answer extends Part { primes: number }

const script = `
  const { parentPort, workerData } = require("node:worker_threads");
  const isPrime = (n) => { for (let d = 2; d * d <= n; d++) if (n % d === 0) return false; return n > 1; };
  let primes = 0;
  for (let n = workerData.from; n < workerData.to; n++) if (isPrime(n)) primes++;
  parentPort.postMessage({ ...workerData, primes });
`;

function compute(part: Part): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(script, { eval: true, workerData: part });
    worker.once("message", (answer: Answer) => resolve(answer));
    worker.once("error", reject);
  });
}

async function main(): Promise<void> {
  const parts: Part[] = [0, 1, 2, 3].map((index) => ({ from: index * 2500, to: (index + 1) * 2500 }));
  const answers = await Promise.all(parts.map(compute));
  for (const { from, to, primes } of answers) console.log(`${from}..${to}: ${primes}`);
  console.log("together", answers.reduce((sum, { primes }) => sum + primes, 0));
}

void main();
