// Children: output, exit codes, a pipeline by streams, a message channel, one that is killed.
const { execFileSync, fork, spawn, spawnSync } = require("node:child_process");
const { once } = require("node:events");

async function main() {
  console.log(execFileSync("sort", ["-n"], { input: "10\n9\n2\n" }).toString().trim().split("\n"));
  const failed = spawnSync(process.execPath, ["-e", "console.error('bye'); process.exit(7)"]);
  console.log(failed.status, failed.signal, failed.stderr.toString());

  const numbers = spawn("seq", ["1", "5000"]);
  const counter = spawn("wc", ["-l"]);
  numbers.stdout.pipe(counter.stdin);
  counter.stdout.on("data", (data) => console.log("lines:", data.toString().trim()));
  await once(counter, "close");

  const child = fork(__filename, ["child"]);
  child.send({ factors: [6, 7] });
  const [answer] = await once(child, "message");
  await once(child, "exit");
  console.log(answer);

  const slow = spawn("sleep", ["60"]);
  slow.kill("SIGKILL");
  console.log((await once(slow, "exit")).join(" "));
  const absent = spawn("/no/such/program");
  absent.on("error", (error) => console.log(error.code));
}

if (process.argv[2] === "child") {
  process.once("message", ({ factors }) => {
    process.send({ product: factors.reduce((product, factor) => product * factor, 1) });
    process.disconnect();
  });
} else {
  main();
}
