// Handlers for signals, a signal to a child, and the code with which a handler ends the program.
const { spawn } = require("node:child_process");
const { once } = require("node:events");

async function main() {
  // A program that only waits for signals has nothing to wait for, and ends.
  const forever = setInterval(() => {}, 1000);
  const heard = once(process, "SIGUSR2");
  process.kill(process.pid, "SIGUSR2");
  console.log(await heard);

  const script = "process.on('SIGTERM', () => process.exit(9)); console.log('ready'); setInterval(() => {}, 1000)";
  const child = spawn(process.execPath, ["-e", script]);
  await once(child.stdout, "data");
  child.kill("SIGTERM");
  console.log("child:", await once(child, "exit"));
  console.log(process.kill(process.pid, 0));

  process.on("SIGINT", () => {
    console.log("interrupted");
    process.exitCode = 4;
    clearInterval(forever);
  });
  process.on("exit", (code) => console.log("exit", code));
  process.kill(process.pid, "SIGINT");
}

main();
