// A Node.js that has started and waits for its program.
//
// Node loads this file before the main module, because NODE_OPTIONS says `--require`; the command line is
// that of a cold start. When this file is through, Node goes on to the main module by itself, so that
// nothing of ours is below the program. The file has to stay where it is: every worker thread inherits
// the option and loads it too, and finds nothing to do.
//
// A job that this process cannot become, because it asks for something that is settled at the start (other
// options, other variables for Node), is started cold beneath it.
'use strict';

const Module = require('module');
const { isMainThread } = require('worker_threads');

// The program is not to find this file among its modules, nor among the files that were looked up.
delete Module._cache[__filename];
for (const key of Object.keys(Module._pathCache)) {
  if (Module._pathCache[key] === __filename) delete Module._pathCache[key];
}
Object.defineProperty(process, '_preload_modules', { value: [] });

if (isMainThread) waitForProgram();

function waitForProgram() {
  const fs = require('fs');
  const startedWith = { ...process.env };
  delete startedWith.NODE_OPTIONS;

  touch();
  touchOutput();
  fs.writeSync(1, 'ready\n');
  let job = readJob(fs);
  process.chdir(job.directory);
  if (/\/sh$/.test(job.command[0])) job = afterCompiler(fs, job);

  const { command } = job;
  const start = [process.argv0, ...process.execArgv];
  const sameStart = start.every((argument, index) => argument === command[index]) &&
    command.length > start.length && !command[start.length].startsWith('-') &&
    sameSettings(startedWith, job.environment);
  if (!sameStart) return runCold(job);

  setEnvironment(job.environment);
  const [entry, ...rest] = command.slice(start.length);
  const started = process.argv[1];
  process.argv.splice(1, Infinity, require('path').resolve(entry), ...rest);
  if (process.argv[1] !== started) runInstead(process.argv[1]);
}

/** Goes the ways that a short program takes, so that their code is compiled and their memory there. */
function touch() {
  // Nothing may be left to do later (a stream of Node's own would): that would show in the stack traces
  // of ES modules.
  const nothing = () => true;
  const sink = { write: nothing, on: nothing, once: nothing, removeListener: nothing, listenerCount: () => 0 };
  // To find out whether there are colours, a console makes `process.stderr`.
  const { Console } = require('console');
  const console = new Console({ stdout: sink, stderr: sink, colorMode: false });
  console.log('Hello, World!', 1, [1, 'a'], { a: 1 }, new Map([[1, 2]]), new Error('no').stack);
  const sample = new Module(__filename, null);
  sample.filename = __filename;
  sample.paths = [];
  sample._compile('"use strict"; const a = [1].map((n) => n + 1); module.exports = `${a}`;', __filename);
}

/**
 * Does with an imitation what Node does when a program first uses `process.stdout`. That itself is not
 * made: it makes the pipe non-blocking and takes a descriptor, which a program that writes in another
 * way would notice.
 */
function touchOutput() {
  if (!process._tickCallback) return;
  const nothing = () => 0;
  const handle = {
    writeUtf8String: nothing, writeLatin1String: nothing, writeBuffer: nothing, getAsyncId: nothing,
    close: nothing, ref: nothing, unref: nothing, readStop: nothing, readStart: nothing,
  };
  const { Socket } = require('net');
  require('tty');
  const socket = new Socket({ handle, readable: false, writable: true });
  socket.write('text\n', nothing);
  process._tickCallback();
}

/** Reads what is to be run: no byte more than that, the rest is the program's. */
function readJob(fs) {
  const read = (size) => {
    const buffer = Buffer.allocUnsafeSlow(size);
    for (let filled = 0; filled < size;) {
      const count = fs.readSync(0, buffer, filled, size - filled, null);
      if (count === 0) process.reallyExit(0);
      filled += count;
    }
    return buffer;
  };
  const fields = read(read(4).readUInt32BE(0)).toString('utf8').split('\0');
  fields.pop();
  const [directory, count, ...rest] = fields;
  const pairs = rest.slice(Number(count)).map((pair) => {
    const at = pair.indexOf('=');
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  return { directory, command: rest.slice(0, Number(count)), environment: Object.fromEntries(pairs) };
}

/** Whether what Node and the C library read only once is as it was at the start. */
function sameSettings(before, after) {
  const once = /^(NODE_|LD_|LC_|LANG|HOME$|OPENSSL_|SSL_|ICU_|MALLOC_|GLIBC_)/;
  return [...Object.keys(before), ...Object.keys(after)]
    .every((name) => !once.test(name) || before[name] === after[name]);
}

function setEnvironment(environment) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  for (const name of Object.keys(environment)) process.env[name] = environment[name];
}

/**
 * Runs another main module than the command line named. Node fetches `Module.runMain` to start it; it gets
 * a bound function that time, which shows in no stack trace.
 */
function runInstead(entry) {
  const { runMain } = Module;
  const property = Object.getOwnPropertyDescriptor(Module, 'runMain');
  Object.defineProperty(Module, 'runMain', {
    configurable: true,
    enumerable: true,
    get() {
      Object.defineProperty(Module, 'runMain', property);
      return runMain.bind(Module, entry);
    },
  });
}

/**
 * A compiled language's command is its run.sh with the memory limit and the entry file. Does what that
 * script does: puts what was compiled beside the sources, and runs the file of the entry's name.
 */
function afterCompiler(fs, job) {
  const [, , , , limit, entry, ...rest] = job.command;
  const move = (from, to) => {
    for (const item of fs.readdirSync(from, { withFileTypes: true })) {
      const [source, target] = [`${from}/${item.name}`, `${to}/${item.name}`];
      if (item.isDirectory() && fs.existsSync(target)) move(source, target);
      else fs.renameSync(source, target);
    }
  };
  if (!fs.existsSync('.program')) return job;
  move('.program', '.');
  fs.rmSync('.program', { recursive: true });
  const extension = { '.mts': '.mjs', '.cts': '.cjs' }[entry.slice(-4)] ?? '.js';
  const command = [
    process.argv0, '--experimental-detect-module', '--enable-source-maps',
    `--max-old-space-size=${limit}`, entry.replace(/\.[^.]*$/, extension), ...rest,
  ];
  // The script's shell sets this one.
  return { ...job, command, environment: { ...job.environment, PWD: job.directory } };
}

/** Starts the cold command in place of this process, or beneath it where Node cannot do that. */
function runCold({ command, environment }) {
  if (process.execve) process.execve(command[0], command, environment);
  const { status, signal } = require('child_process')
    .spawnSync(command[0], command.slice(1), { env: environment, stdio: 'inherit' });
  if (signal) process.kill(process.pid, signal);
  process.reallyExit(status);
}
