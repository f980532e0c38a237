//! JavaScript, TypeScript and Java programs that print what they can see of their process and environment.
//! They do not look at mounts and `/opt`, which differ: see `mod.rs`.

use super::program::Program;

pub(super) fn javascript() -> Vec<Program> {
    let main = |name: &str, code: &str| Program::new(name, "main.js", code);
    vec![
        main("hello", "console.log('Hello, World!')"),
        main("arguments", "console.log(process.argv, process.execArgv, __filename)").args(&["a", "", "b c", "--x", "ü"]),
        main("environment", "console.log(Object.entries(process.env).sort());console.log(require('child_process').execSync('env | sort').toString())")
            .env("MINE", "1=2").env("HIGH", "ü"),
        main("descriptors", "const fs = require('fs');\nfor (const fd of fs.readdirSync('/proc/self/fd').sort()) {\n  let to; try { to = fs.readlinkSync('/proc/self/fd/' + fd); } catch { continue; }\n  console.log(fd, to.replace(/[0-9]+/g, 'N'), fs.readFileSync('/proc/self/fdinfo/' + fd, 'utf8').match(/flags.*/)[0]);\n}"),
        main("status", STATUS_IN_JAVASCRIPT),
        main("limits", "console.log(require('fs').readFileSync('/proc/self/limits', 'utf8'))"),
        main("ids and relations", "console.log(process.getuid(), process.getgid(), process.getgroups(), process.ppid, process.umask(), process.cwd());\nconst s = require('fs').readFileSync('/proc/self/stat', 'utf8').split(' ');\nconsole.log(s[1], s[4] === s[0], s[5] === s[0], s[6], s[19])"),
        main("listings", "const fs = require('fs');\nfor (const top of ['/', '/tmp', '/work', '/dev/shm']) console.log(top, fs.readdirSync(top).filter((n) => n !== 'opt'))"),
        main("places to write", "const fs = require('fs');\nfor (const top of ['/', '/usr', '/etc', '/dev', '/opt', '/opt/layers', '/proc', '/work', '/tmp', '/dev/shm']) { try { fs.writeFileSync(top + '/x', ''); console.log(top); } catch { } }"),
        main("no input", "console.log(JSON.stringify(require('fs').readFileSync(0, 'utf8')))"),
        main("a megabyte of input", "let n = 0;\nprocess.stdin.on('data', (d) => n += d.length).on('end', () => console.log(n))").stdin(b"0123456789abcde\n".repeat(1 << 16)),
        main("uncaught", "function f() { null.x; }\nf()"),
        main("syntax error", "let a = ;"),
        main("exit", "process.on('exit', (c) => console.log('bye', c));\nprocess.exit(5)"),
        main("killed", "process.kill(process.pid, 'SIGKILL');\nsetTimeout(() => {}, 9e4)"),
        main("terminated", "process.kill(process.pid, 'SIGTERM');\nsetTimeout(() => {}, 9e4)"),
        main("second file", "console.log(require('./helper').name, require.main === module)").file("helper.js", "exports.name = __filename"),
        main("children", "const { spawnSync } = require('child_process');\nconsole.log(spawnSync(process.execPath, ['-p', 'process.env.A + process.env.NODE_OPTIONS']).stdout.toString())").env("A", "b"),
        main("heap and cores", "const os = require('os');\nconsole.log(require('v8').getHeapStatistics().heap_size_limit, os.cpus().length, os.hostname(), os.homedir(), os.tmpdir(), os.userInfo())"),
        Program::new("another name", "src/app.mjs", "console.log(import.meta.url, process.argv);\nawait 1;\nnull.x").args(&["a"]),
        main("another directory", "console.log(process.cwd(), __filename, process.argv)").file("sub/data", "x").workdir("sub"),
        main("options in a variable", "console.log(process.execArgv, process.env.NODE_OPTIONS)").env("NODE_OPTIONS", "--stack-trace-limit=1"),
    ]
}

pub(super) fn typescript() -> Vec<Program> {
    let main = |name: &str, code: &str| Program::new(name, "main.ts", code);
    vec![
        main("hello", "const greeting: string = 'Hello, World!';\nconsole.log(greeting);\n"),
        main("arguments and variables", "console.log(process.argv, process.execArgv, Object.entries(process.env).sort(), process.cwd());\n")
            .args(&["a", "ü"]).env("MINE", "1"),
        main("uncaught", "interface A { x: number }\n\nfunction f(a: A): never {\n  throw new Error(`no ${a.x}`);\n}\nf({ x: 1 });\n"),
        main("type error", "const n: number = 'text';\nconsole.log(n);\n"),
        main("second file", "import { name } from './helper';\nconsole.log(name);\n").file("helper.ts", "export const name: string = 'helper';\n"),
        main("files that are left", "import { readdirSync, writeFileSync } from 'fs';\nconsole.log(readdirSync('.').sort());\nwriteFileSync('out', 'x');\n"),
        main("input", "import { readFileSync } from 'fs';\nconsole.log(readFileSync(0, 'utf8').length);\n").stdin(b"abc\n".repeat(9999)),
        Program::new("another name", "src/app.mts", "console.log(import.meta.url, await 1);\n"),
    ]
}

pub(super) fn java() -> Vec<Program> {
    let main = |name: &str, body: &str| {
        let code = format!(
            "import java.nio.file.*;\nimport java.util.*;\npublic class Main {{\n  public static void main(String[] args) throws Exception {{\n{body}\n  }}\n}}\n"
        );
        Program::new(name, "Main.java", &code)
    };
    let read = |file: &str| format!("System.out.println(Files.readString(Path.of(\"{file}\")));");
    vec![
        main("hello", "System.out.println(\"Hello, World!\");"),
        main("arguments", "System.out.println(Arrays.asList(args));").args(&["a", "", "b c", "ü"]),
        main("environment", "System.out.println(new TreeMap<>(System.getenv()));")
            .env("MINE", "1=2"),
        main(
            "environment as it is",
            "System.out.println(new TreeMap<>(System.getenv()));\nnew ProcessBuilder(\"env\").inheritIO().start().waitFor();",
        ),
        main(
            "descriptors",
            "for (var f : new TreeSet<>(Arrays.asList(new java.io.File(\"/proc/self/fd\").list()))) {\n  try { String to = Files.readSymbolicLink(Path.of(\"/proc/self/fd/\" + f)).toString(); if (to.startsWith(\"pipe\") || to.startsWith(\"socket\")) System.out.println(f); } catch (Exception e) { }\n}",
        ),
        main(
            "status",
            "for (String l : Files.readAllLines(Path.of(\"/proc/self/status\"))) if (l.matches(\"(Uid|Gid|Groups|Umask|Cap|NoNew|Seccomp|ShdPnd|SigPnd|SigBlk|SigIgn|SigCgt|PPid|CoreDumping|THP).*\")) System.out.println(l);",
        ),
        main("limits", &read("/proc/self/limits")),
        main(
            "listings",
            "for (String top : List.of(\"/\", \"/tmp\", \"/work\", \"/dev/shm\", \"/work/.program\")) { System.out.println(top); try (var s = Files.list(Path.of(top))) { s.map(Path::toString).filter(p -> !p.equals(\"/opt\")).sorted().forEach(System.out::println); } }",
        ),
        main("uncaught", "Object o = null;\no.hashCode();"),
        main(
            "exit",
            "Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println(\"bye\")));\nSystem.exit(7);",
        ),
        main("a megabyte of input", "System.out.println(System.in.readAllBytes().length);")
            .stdin(b"0123456789abcde\n".repeat(1 << 16)),
        main("does not compile", "int a = \"text\";"),
        main("libraries beside it", "System.out.println(new java.io.File(\"lib\").exists());")
            .file("lib/note", "x"),
        main("another directory", "System.out.println(System.getProperty(\"user.dir\"));")
            .file("sub/data", "x")
            .workdir("sub"),
    ]
}

const STATUS_IN_JAVASCRIPT: &str = "
const varies = /^(Pid|Tgid|Ngid|NS|Vm|Rss|SigQ|voluntary|nonvoluntary|Hugetlb)/;
console.log(require('fs').readFileSync('/proc/self/status', 'utf8').split('\\n').filter((l) => !varies.test(l)).join('\\n'));
";
