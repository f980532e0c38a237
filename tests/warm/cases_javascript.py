"""JavaScript programs whose behaviour must not depend on how Node was started."""
import signal

from case import Case

THROWS = "function f() { throw new TypeError('no'); }\nfunction g() { f(); }\ng();\n"

CASES = [
    Case("hello", 'console.log("Hello, World!");\n'),
    Case("hello from an ES module", 'import { join } from "node:path";\nconsole.log(join("a", "b"), import.meta.url);\n'),
    Case("hello from an .mjs file", 'console.log("x", import.meta.dirname, typeof require);\n', entry="main.mjs"),
    Case("hello from a .cjs file", 'console.log("x", typeof require, __filename);\n', entry="main.cjs"),
    Case("module type of the package", 'console.log(import.meta.url);\n', others={"package.json": '{"type": "module"}'}),
    Case("process", """
const p = process;
console.log(p.argv, p.execArgv, p.argv0, p.execPath, p.title, p.exitCode, p.cwd(), p.umask());
console.log(p._eval, p._preload_modules, p.features, p.config.variables.napi_build_version, p.debugPort);
console.log(Object.getOwnPropertyNames(p), p.eventNames(), p.getMaxListeners());
""", args=("a", "--b", "", "ü")),
    Case("globals", "console.log(Object.getOwnPropertyNames(globalThis).join(), Reflect.ownKeys(globalThis).length, this === module.exports);\n"),
    Case("modules", """
const Module = require("module");
console.log(require.main === module, module.id, module.parent, module.children, module.paths, module.loaded);
console.log(Object.keys(require.cache), Module._pathCache, Module.globalPaths, Object.keys(Module._extensions));
console.log(Object.getOwnPropertyDescriptor(Module, "runMain"), module.isPreloading, __filename, __dirname);
console.log(require.resolve.paths("x"), process.mainModule === module);
"""),
    Case("environment", """
console.log(Object.entries(process.env));
console.log(require("child_process").execFileSync("env").toString());
""", environment={"MINE": "1=2", "EMPTY": "", "HIGH": "ü", "TZ": "Asia/Tokyo"}),
    Case("time zone", "console.log(String(new Date(0)));\n", environment={"TZ": "Asia/Tokyo"}),
    Case("options in a variable", "console.log(process.execArgv, process.env.NODE_OPTIONS);\nnull.x;\n",
         environment={"NODE_OPTIONS": "--stack-trace-limit=1"}),
    Case("another entry", "console.log(__filename, process.argv, new Error('x').stack);\n" + THROWS, entry="src/app.js", args=("a",)),
    Case("another ES module", "import fs from 'fs';\nconsole.log(process.argv, new Error('x').stack);\nawait 1;\n" + THROWS, entry="app.mjs"),
    Case("descriptors and signals", """
const fs = require("fs");
console.log(fs.readdirSync("/proc/self/fd").length, fs.readdirSync("/proc/self/task").length);
console.log(fs.readFileSync("/proc/self/status", "utf8").match(/Sig[BIC].*|Threads.*/g));
console.log(fs.readFileSync("/proc/self/fdinfo/1", "utf8").match(/flags.*/g));
"""),
    Case("uncaught error", THROWS),
    Case("uncaught error in an ES module", "import 'fs';\n" + THROWS),
    Case("uncaught value", "throw { a: 1 };\n"),
    Case("error with a cause", "throw new Error('a', { cause: new Error('b') });\n"),
    Case("syntax error", "console.log(1);\nlet a = ;\n"),
    Case("syntax error in an ES module", "import 'fs';\nlet a = ;\n"),
    Case("syntax error in a required file", "require('./bad');\n", others={"bad.js": "var 1a;\n"}),
    Case("no such module", "require('nothing');\n"),
    Case("no such module to import", "import 'nothing';\n"),
    Case("empty program", ""),
    Case("unhandled rejection", "Promise.reject(new Error('no'));\nsetTimeout(() => console.log('never'), 50);\n"),
    Case("unhandled rejection of a value", "Promise.reject(7);\n"),
    Case("rejection handled late", "process.on('unhandledRejection', (e) => console.log('got', e.message));\nPromise.reject(new Error('no'));\n"),
    Case("top-level await", "import { setTimeout as s } from 'timers/promises';\nconsole.log(await s(20, 'x'));\n"),
    Case("top-level await that never ends", "export {};\nawait new Promise(() => {});\n"),
    Case("dynamic import", "import('./m.mjs').then((m) => console.log(m.x, m));\n", others={"m.mjs": "export const x = 1;\n"}),
    Case("require and import of files beside it", "import a from './a.cjs';\nimport d from './d.json' with { type: 'json' };\nconsole.log(a, d);\n",
         others={"a.cjs": "module.exports = [module.id, require.main];\n", "d.json": '{"x": 1}'}),
    Case("package in node_modules", "console.log(require('p').x, require('p/package.json').name);\n",
         others={"node_modules/p/package.json": '{"name": "p", "main": "i.js"}', "node_modules/p/i.js": "exports.x = __filename;\n"}),
    Case("exit code", "process.exitCode = 3;\nprocess.on('exit', (c) => console.log('bye', c));\n"),
    Case("exit", "process.on('exit', (c) => console.log('bye', c));\nsetTimeout(() => {}, 9e4);\nprocess.exit(5);\n"),
    Case("exit hooks", "process.on('beforeExit', () => console.log('before'));\nprocess.on('exit', () => console.log('exit'));\n"),
    Case("abort", "process.abort();\n", may_differ=("stderr",)),
    Case("kills itself", "process.kill(process.pid, 'SIGKILL');\nsetTimeout(() => {}, 9e4);\n"),
    Case("interrupted", "setTimeout(() => {}, 9e4);\nconsole.log('up');\n", steps=((b"up\n", signal.SIGINT),)),
    Case("signal handled", "process.on('SIGTERM', (s) => { console.log(s); process.exit(2); });\nsetTimeout(() => {}, 9e4);\nconsole.log('up');\n",
         steps=((b"up\n", signal.SIGTERM),)),
    Case("timers", """
const began = Date.now();
setTimeout(() => console.log("150", Date.now() - began >= 149), 150);
setTimeout(() => console.log("20"), 20);
process.nextTick(() => console.log("tick"));
queueMicrotask(() => console.log("micro"));
""", wait=1.0),
    Case("order of events", "setImmediate(() => console.log('immediate'));\nsetTimeout(() => console.log('late'), 500);\nPromise.resolve().then(() => console.log('promise'));\nprocess.nextTick(() => console.log('tick'));\nconsole.log('main');\n"),
    Case("input as a stream", "let n = 0;\nprocess.stdin.on('data', (d) => n += d.length).on('end', () => console.log(n));\n", stdin=b"0123456789\n" * 200_000),
    Case("input at once", "console.log(require('fs').readFileSync(0, 'utf8').split('\\n').length);\n", stdin=b"a\n" * 100_000),
    Case("input from /dev/stdin", "console.log(require('fs').readFileSync('/dev/stdin', 'utf8'));\n", stdin=b"abc"),
    Case("input line by line", """
const rl = require("readline").createInterface({ input: process.stdin });
rl.on("line", (line) => console.log("<" + line + ">")).on("close", () => console.log("end"));
""", stdin=b"x\ny\nz"),
    Case("input by async iteration", "import readline from 'readline';\nfor await (const l of readline.createInterface({ input: process.stdin })) console.log(l);\n", stdin=b"x\ny\n"),
    Case("dialogue", """
process.stdin.once("data", (d) => {
  console.log("two " + d);
  process.stdin.once("data", (d) => { console.log("three " + d); process.exit(); });
});
console.log("one");
""", steps=((b"one", b"a"), (b"two a", b"b"))),
    Case("kind of the streams", """
for (const s of [process.stdin, process.stdout, process.stderr]) {
  console.log(s.constructor.name, s._type, s.fd, s.isTTY, s.writableHighWaterMark, s.readableHighWaterMark);
}
process.stdin.destroy();
"""),
    Case("worker", """
const { Worker, isMainThread, parentPort, workerData } = require("worker_threads");
if (isMainThread) {
  new Worker(__filename, { workerData: 3 }).on("message", (m) => console.log(m)).on("exit", (c) => console.log(c));
} else {
  parentPort.postMessage([workerData, process.execArgv, process.argv, process._preload_modules,
    Object.keys(require.cache), require.main === module, process.env.NODE_OPTIONS, new Error("x").stack]);
}
"""),
    Case("worker that fails", """
const { Worker } = require("worker_threads");
new Worker("console.log('w'); throw new Error('no')", { eval: true });
""", may_differ=("stderr",)),  # Node's trace ends in one of two ways, cold too, if the worker ends early.
    Case("worker from an ES module", """
import { Worker, isMainThread } from "worker_threads";
if (isMainThread) new Worker(new URL(import.meta.url));
else console.log("in the worker", process.argv.length);
"""),
    Case("fork", """
const { fork } = require("child_process");
if (process.argv[2] === "child") process.send([process.execArgv, process.argv.slice(2), process.env.NODE_OPTIONS]);
else fork(__filename, ["child"]).on("message", (m) => console.log(m)).on("exit", (c) => console.log(c));
"""),
    Case("spawn", "const r = require('child_process').spawnSync('cat', { stdio: 'inherit' });\nconsole.log(r.status);\n", stdin=b"abc\n"),
    Case("stack depth", "let n = 0;\n(function f() { n++; f(); })();\n"),
    Case("stack from inside", "console.log(new Error('x').stack);\nsetTimeout(() => console.trace('t'));\nError.stackTraceLimit = 50;\nconsole.trace('u');\n"),
    Case("structured stack", "Error.prepareStackTrace = (e, s) => s.map((c) => [c.getFileName(), c.getFunctionName(), c.getLineNumber(), c.getTypeName()]);\nconsole.log(new Error('x').stack);\n"),
    Case("both streams", "for (let i = 0; i < 5; i++) { console.log(i); console.error(-i); }\n"),
    Case("large output", "for (let i = 0; i < 100000; i++) console.log(i);\n"),
    Case("raw output", "require('fs').writeSync(1, 'x\\n');\nprocess.stdout.write('y\\n');\n"),
    Case("heap limit", "console.log(require('v8').getHeapStatistics().heap_size_limit);\n"),
    Case("warnings", "process.emitWarning('careful');\nnew Buffer(1);\n", may_differ=("stderr",)),
    Case("source of functions", "console.log(require('module').runMain.name, String(require).slice(0, 40), require.extensions);\n"),
    Case("vm and eval", "console.log(eval('1+1'), new Function('return this')() === globalThis, require('vm').runInNewContext('a', { a: 1 }));\n"),
    Case("intl and regular expressions", "console.log(new Intl.NumberFormat('de').format(1234.5), RegExp.$1, RegExp.lastMatch, Intl.DateTimeFormat().resolvedOptions());\n"),
]
