// A web server with its client, and a line server over plain TCP.
import http from "node:http";
import net from "node:net";
import { once } from "node:events";

const web = http.createServer(async (request, response) => {
  const parts = [];
  for await (const part of request) parts.push(part);
  const body = Buffer.concat(parts).toString();
  response.writeHead(request.url === "/echo" ? 200 : 404, { "content-type": "application/json" });
  response.end(JSON.stringify({ method: request.method, url: request.url, body }));
});
web.listen(0, "127.0.0.1");
await once(web, "listening");
const base = `http://127.0.0.1:${web.address().port}`;
const answer = await fetch(`${base}/echo`, { method: "POST", body: "grüß dich" });
console.log(answer.status, await answer.json());
console.log((await fetch(`${base}/nothing`)).status);
web.closeAllConnections();
web.close();

const lines = net.createServer((peer) => {
  peer.setEncoding("utf8");
  peer.on("data", (text) => peer.write(text.split("").reverse().join("")));
  peer.on("end", () => peer.end());
});
lines.listen(0, "127.0.0.1");
await once(lines, "listening");
const client = net.connect(lines.address().port, "127.0.0.1");
client.setEncoding("utf8");
client.write("stressed");
console.log((await once(client, "data"))[0]);
client.end();
await once(client, "close");
lines.close();
await once(lines, "close");

const refused = net.connect(1, "127.0.0.1");
refused.on("error", (error) => console.log(error.code));
