// A little key-value server with a typed protocol, spoken over TCP in lines of JSON.
import * as net from "node:net";
import * as readline from "node:readline";
import { once } from "node:events";

type Command = { op: "set"; key: string; value: unknown } | { op: "get"; key: string } | { op: "keys" };
type Reply = { ok: true; value: unknown } | { ok: false; error: string };

const store = new Map<string, unknown>();
function answer(command: Command): Reply {
  switch (command.op) {
    case "set": store.set(command.key, command.value); return { ok: true, value: null };
    case "get": return store.has(command.key)
      ? { ok: true, value: store.get(command.key) }
      : { ok: false, error: `no ${command.key}` };
    case "keys": return { ok: true, value: [...store.keys()].sort() };
  }
}

const server = net.createServer((peer) => {
  readline.createInterface({ input: peer }).on("line", (line) => {
    peer.write(JSON.stringify(answer(JSON.parse(line) as Command)) + "\n");
  });
});

async function main(): Promise<void> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = net.connect((server.address() as net.AddressInfo).port, "127.0.0.1");
  const replies = readline.createInterface({ input: client })[Symbol.asyncIterator]();
  const ask = async (command: Command): Promise<void> => {
    client.write(JSON.stringify(command) + "\n");
    console.log((await replies.next()).value);
  };
  await ask({ op: "set", key: "ü", value: [1, { two: 2 }] });
  await ask({ op: "set", key: "a", value: true });
  await ask({ op: "get", key: "ü" });
  await ask({ op: "get", key: "nothing" });
  await ask({ op: "keys" });
  client.end();
  server.close();
}

void main();
