// The order of tasks and microtasks, asynchronous iteration, proxies, private fields, tags.
import { setTimeout as sleep } from "node:timers/promises";
import { EventEmitter } from "node:events";

const order = [];
setTimeout(() => order.push("timer"), 0);
queueMicrotask(() => order.push("microtask"));
process.nextTick(() => order.push("tick"));
order.push("synchronous");
await sleep(10);
console.log(order.join(" "));

async function* countdown(from) {
  while (from > 0) {
    await sleep(1);
    yield from--;
  }
}
const seen = [];
for await (const number of countdown(4)) seen.push(number);
console.log(seen);

class Account {
  #balance = 0;
  static opened = 0;
  constructor() { Account.opened++; }
  deposit(amount) { this.#balance += amount; return this; }
  get balance() { return this.#balance; }
}
console.log(new Account().deposit(5).deposit(7).balance, Account.opened, "balance" in new Account());

const loud = new Proxy({}, { get: (_, name) => `no ${String(name)} here`, has: () => true });
console.log(loud.cheese, "anything" in loud);
const tag = (parts, ...values) => parts.raw.map((part, index) => part + (values[index] ?? "")).join("|");
console.log(tag`a${1}b\n${2}c`);
const { a, ...rest } = { a: 1, b: 2, c: 3 };
console.log(a, rest, [..."abc"].entries().next().value, structuredClone(new Map([[1, { deep: true }]])));
const emitter = new EventEmitter();
emitter.once("news", (...words) => console.log(...words));
console.log(emitter.emit("news", "read", "once"), emitter.emit("news"));
const { default: answer } = await import("data:text/javascript,export default 6 * 7");
console.log(answer, typeof require);
