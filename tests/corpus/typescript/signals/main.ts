// A handler for each signal by a typed table, and an orderly end.
const log: string[] = [];
const handlers: Partial<Record<NodeJS.Signals, () => void>> = {
  SIGUSR2: () => log.push("reload"),
  SIGHUP: () => log.push("hang up"),
  SIGTERM: () => {
    log.push("terminate");
    clearInterval(alive);
  },
};
const alive = setInterval(() => {}, 1000);
for (const [name, handler] of Object.entries(handlers)) process.on(name as NodeJS.Signals, handler);

const inTurn: NodeJS.Signals[] = ["SIGUSR2", "SIGHUP", "SIGUSR2", "SIGTERM"];
function next(): void {
  const signal = inTurn.shift();
  if (!signal) return;
  process.once(signal, () => setImmediate(next));
  process.kill(process.pid, signal);
}
next();
process.on("exit", () => console.log(log.join(", ")));
