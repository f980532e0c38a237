// Children behind a typed wrapper: an outcome is a value, not an exception.
import { spawn } from "node:child_process";

type Outcome =
  | { kind: "exited"; code: number; stdout: string }
  | { kind: "killed"; signal: NodeJS.Signals }
  | { kind: "absent"; reason: string };

function run(program: string, args: string[], options: { input?: string; killWith?: NodeJS.Signals } = {}): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(program, args);
    let stdout = "";
    child.stdout.on("data", (data: Buffer) => (stdout += data.toString()));
    child.on("error", (error: NodeJS.ErrnoException) => resolve({ kind: "absent", reason: error.code ?? "?" }));
    child.on("close", (code, signal) => {
      if (signal) resolve({ kind: "killed", signal });
      else resolve({ kind: "exited", code: code ?? -1, stdout });
    });
    child.stdin.on("error", () => {});
    child.stdin.end(options.input ?? "");
    if (options.killWith) child.kill(options.killWith);
  });
}

function describe(outcome: Outcome): string {
  switch (outcome.kind) {
    case "exited": return `exited with ${outcome.code}: ${JSON.stringify(outcome.stdout)}`;
    case "killed": return `killed by ${outcome.signal}`;
    case "absent": return `not there: ${outcome.reason}`;
  }
}

async function main(): Promise<void> {
  console.log(describe(await run("tr", ["a-z", "A-Z"], { input: "shout" })));
  console.log(describe(await run("/bin/sh", ["-c", "echo partly; exit 3"])));
  console.log(describe(await run("sleep", ["60"], { killWith: "SIGTERM" })));
  console.log(describe(await run("/no/such/program", [])));
  const all = await Promise.all(["3", "1", "2"].map((text) => run("echo", [text])));
  console.log(all.map((outcome) => (outcome.kind === "exited" ? outcome.stdout.trim() : "?")).join(" "));
}

void main();
