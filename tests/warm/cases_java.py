"""Java programs whose behaviour must not depend on how the virtual machine was started."""
import signal

from case import Case


def main(body, imports="", more=""):
    return f"{imports}\npublic class Main {{\n{more}\n    public static void main(String[] args) throws Exception {{\n{body}\n    }}\n}}\n"


HELLO = main('        System.out.println("Hello, World!");')

RUN = [
    Case("hello", HELLO),
    Case("arguments", main("System.out.println(Arrays.asList(args));", "import java.util.*;"), args=("a", "", "b c", "ü")),
    Case("in a package", "package a.b;\nclass Start { public static void main(String[] s) { System.out.println(Start.class); new Throwable().printStackTrace(); } }\n"),
    Case("properties", main("""
        var names = new TreeMap<>(System.getProperties());
        names.keySet().removeAll(List.of("java.vm.compressedOopsMode", "line.separator"));
        names.forEach((k, v) -> System.out.println(k + "=" + v));
        System.out.println(ClassLoader.getSystemClassLoader().getClass() + " " + Main.class.getClassLoader().getClass());
        System.out.println(Main.class.getModule().isNamed() + " " + Main.class.getProtectionDomain().getCodeSource().getLocation());
        System.out.println(Thread.currentThread().getContextClassLoader().getClass() + " " + Runtime.getRuntime().maxMemory());
""", "import java.util.*;"), args=("x", "y z")),
    Case("environment", main("System.out.println(new TreeMap<>(System.getenv()));new ProcessBuilder(\"env\").inheritIO().start().waitFor();", "import java.util.*;")),
    Case("a variable of one's own", main("System.out.println(System.getenv(\"MINE\"));"), environment={"MINE": "ü"}),
    Case("uncaught exception", main("f(0);", more="static int f(int n) { return 1 / n; }")),
    Case("exception with a cause", main("try { f(0); } catch (Exception e) { throw new IllegalStateException(\"no\", e); }",
         more="static int f(int n) { return 1 / n; }")),
    Case("exception in an initialiser", main("", more="static int n = Integer.parseInt(\"x\");")),
    Case("exit", main("System.out.println(1); System.exit(7);")),
    Case("exit hooks", main("Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println(\"bye\")));\nSystem.exit(3);")),
    Case("halt", main("System.out.print(\"x\"); Runtime.getRuntime().halt(9);")),
    Case("threads at the end", main("""
        new Thread(() -> { try { Thread.sleep(200); } catch (Exception e) {} System.out.println("late"); }).start();
        Thread d = new Thread(() -> { try { Thread.sleep(60000); } catch (Exception e) {} });
        d.setDaemon(true);
        d.start();
        System.out.println("main ends");
""")),
    Case("exception beside a thread", main("new Thread(() -> { try { Thread.sleep(200); } catch (Exception e) {} System.out.println(\"late\"); }).start();\nthrow new Error(\"no\");")),
    Case("exception in a thread", main("Thread t = new Thread(() -> { throw new RuntimeException(\"no\"); });\nt.start();\nt.join();")),
    Case("handler for uncaught ones", main("Thread.setDefaultUncaughtExceptionHandler((t, e) -> System.out.println(t + \" \" + e));\nthrow new Error(\"no\");")),
    Case("threads", main("""
        System.out.println(Thread.currentThread() + " " + Thread.currentThread().getId() + " " + Thread.activeCount());
        Thread t = new Thread(() -> {});
        System.out.println(t.getName());
        System.out.println(Thread.getAllStackTraces().keySet().stream().map(Thread::getName).sorted().toList());
""")),
    Case("stack from inside", main("""
        Thread.dumpStack();
        for (var e : Thread.currentThread().getStackTrace()) System.out.println(e);
        StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE).forEach(System.out::println);
        Runnable r = () -> new Throwable().printStackTrace();
        r.run();
""")),
    Case("all of the input", main("System.out.println(System.in.readAllBytes().length);"), stdin=b"0123456789\n" * 200_000),
    Case("input with a scanner", main("var s = new Scanner(System.in);\nint n = s.nextInt();\nlong t = 0;\nwhile (n-- > 0) t += s.nextLong();\nSystem.out.println(t);", "import java.util.*;"),
         stdin=b"3\n1 2\n3\n"),
    Case("input with a reader", main("var r = new BufferedReader(new InputStreamReader(System.in));\nfor (String l; (l = r.readLine()) != null;) System.out.println(l);", "import java.io.*;"),
         stdin="a\nü\n".encode()),
    Case("no input", main("System.out.println(System.in.read());")),
    Case("dialogue", main("var s = new Scanner(System.in);\nSystem.out.println(\"one\");\nSystem.out.println(\"two \" + s.nextLine());\nSystem.out.println(\"three \" + s.nextLine());", "import java.util.*;"),
         steps=((b"one", b"a\n"), (b"two a", b"b\n"))),
    Case("both streams", main("for (int i = 0; i < 5; i++) { System.out.println(i); System.err.println(-i); }")),
    Case("text beyond ASCII", main("System.out.println(\"ü 語\" + java.nio.charset.Charset.defaultCharset());")),
    Case("stack overflow", main("try { f(0); } catch (StackOverflowError e) { System.out.println(\"deep \" + (n > 100000)); }",
         more="static int n; static int f(int i) { n++; return f(i + 1) + 1; }")),
    Case("out of memory is an error", main("try { int[] a = new int[Integer.MAX_VALUE]; } catch (OutOfMemoryError e) { System.out.println(e); }")),
    Case("reflection into the library", main("java.lang.reflect.Field f = String.class.getDeclaredField(\"value\");\ntry { f.setAccessible(true); } catch (RuntimeException e) { System.out.println(e.getClass()); }")),
    Case("several classes", "interface A { default String f() { return \"A\"; } }\nrecord B(int x) implements A {}\n" + main("System.out.println(new B(1) + new B(2).f());")),
    Case("resources", main("System.out.println(new String(Main.class.getResourceAsStream(\"/data.txt\").readAllBytes()) + Main.class.getResource(\"Main.class\"));"), others={"data.txt": "data"}),
    Case("files beside it", main("System.out.println(java.nio.file.Files.readString(java.nio.file.Path.of(\"data.txt\")) + new java.io.File(\".\").getCanonicalPath());"), others={"data.txt": "data"}),
    Case("pools and streams", main("""
        var pool = Executors.newFixedThreadPool(3);
        System.out.println(pool.submit(() -> Thread.currentThread().getName()).get());
        pool.shutdown();
        System.out.println(IntStream.range(0, 1000).parallel().sum());
""", "import java.util.concurrent.*;\nimport java.util.stream.*;")),
    Case("no main method", "public class Main { static int main(String a) { return 0; } static String s = \"([Ljava/lang/String;)V\"; }\n"),
    Case("descriptors", main("System.out.println(new java.io.File(\"/proc/self/fd\").list().length > 3);")),
    Case("terminated", main("System.out.println(\"up\");\nThread.sleep(60000);"), steps=((b"up\n", signal.SIGTERM),)),
    Case("interrupted with a hook", main("Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println(\"bye\")));\nSystem.out.println(\"up\");\nThread.sleep(60000);"), steps=((b"up\n", signal.SIGINT),)),
    Case("assertions are off", main("assert false;\nSystem.out.println(Main.class.desiredAssertionStatus());")),
]

COMPILE = [
    Case("error", main("int a = \"x\";\nb = 1;")),
    Case("syntax error", "public class Main {\n  void f( { }\n}\n"),
    Case("error beyond ASCII", main("int ü = \"語\";")),
    Case("warning", main("new Thread().stop();\njava.util.List l = new java.util.ArrayList();\nl.add(1);")),
    Case("public class of another name", HELLO.replace("Main", "Greeting")),
    Case("two public classes", HELLO + HELLO.replace("Main", "Other")),
    Case("no main at all", "class A { }\n"),
    Case("main in the second class", "class A { }\nclass B { public static void main(String[] a) { } }\n"),
    Case("several files", "package p;\npublic class Main { public static void main(String[] a) { q.Q.f(); } }\n", entry="src/p/Main.java",
         others={"src/q/Q.java": "package q;\npublic class Q { public static void f() { } public static void main(String[] a) { } }\n"}),
    Case("a single file of any name", HELLO, entry="program.java"),
    Case("empty file", ""),
    Case("inner and anonymous classes", main("Runnable r = new Runnable() { public void run() { } };\nr.run();\nenum E { A }\n", more="static class In { }")),
    Case("not UTF-8", (HELLO + "// \udcff\n").encode("utf-8", "surrogateescape")),
]
