package sandbox.warm;

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.File;
import java.io.FileReader;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.stream.Collectors;
import jdk.internal.vm.annotation.Hidden;

/**
 * A virtual machine that has started and waits for its program. Arguments: the JDK, the memory limit in MB.
 *
 * <p>The one frame of ours below the program is hidden from it: the class lies on the boot class path, where
 * the virtual machine honours {@code @Hidden}. Whatever the program throws goes on to the launcher, which
 * deals with it as always. What does not fit is started cold.
 */
public final class WarmRun {
    private WarmRun() {}

    @Hidden
    public static void main(String[] start) throws Throwable {
        touch();
        // Made by the script for the start; the program brings its own.
        new File(".program/classes").delete();
        new File(".program").delete();
        WarmJob job = WarmJob.await();
        MethodHandle program = prepare(job, start);
        if (program == null) {
            job.runCold();
        }
        program.invokeExact(job.command.subList(6, job.command.size()).toArray(new String[0]));
    }

    /** Finds what to call, or nothing if this is a case for a cold start. */
    private static MethodHandle prepare(WarmJob job, String[] start) throws Throwable {
        // The job's command: sh -c SCRIPT run JDK LIMIT ARGUMENTS. Libraries are looked for at the start.
        if (!job.fitsBut() || !job.command.subList(4, 6).equals(List.of(start)) || new File("lib").exists()) {
            return null;
        }
        String name;
        Class<?> type;
        // Not by way of a channel: the first one opens a socket that stays.
        try (BufferedReader main = new BufferedReader(new FileReader(".program/main"))) {
            name = main.readLine().trim();
            type = Class.forName(name, false, ClassLoader.getSystemClassLoader());
            Method method = type.getMethod("main", String[].class);
            if (!Modifier.isStatic(method.getModifiers()) || method.getReturnType() != void.class
                    || method.getDeclaringClass() != type) {
                return null;
            }
        } catch (IOException | ReflectiveOperationException | LinkageError | RuntimeException error) {
            return null;
        }
        List<String> rest = job.command.subList(6, job.command.size());
        System.setProperty("sun.java.command", rest.isEmpty() ? name : name + " " + String.join(" ", rest));
        return caller(type);
    }

    /**
     * A method in a hidden class that calls the program's main method. That way its class is initialised by
     * the call itself, and nothing shows in the trace of what an initialiser throws. Only a class of the
     * program's module may define such a class beside it, so there is an ordinary one to ask for that.
     */
    private static MethodHandle caller(Class<?> type) throws Throwable {
        byte[] file = callerOf(type.getName().replace('.', '/'));
        MethodHandles.Lookup beside = MethodHandles.privateLookupIn(type, MethodHandles.lookup());
        Method own = beside.defineClass(file).getDeclaredMethod("lookup");
        own.setAccessible(true);
        MethodHandles.Lookup hidden = ((MethodHandles.Lookup) own.invoke(null)).defineHiddenClass(file, false);
        return hidden.findStatic(hidden.lookupClass(), "main", MethodType.methodType(void.class, String[].class));
    }

    /**
     * The class file of {@code class NAME$sandbox}, with {@code static void main(String[] a) { NAME.main(a); }}
     * and {@code static Lookup lookup() { return MethodHandles.lookup(); }}.
     */
    private static byte[] callerOf(String name) throws IOException {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        DataOutputStream file = new DataOutputStream(bytes);
        file.writeInt(0xCAFEBABE);
        file.writeInt(52);
        file.writeShort(18);
        String[] texts = {
            name, name + "$sandbox", "java/lang/Object", "java/lang/invoke/MethodHandles",
            "main", "([Ljava/lang/String;)V", "lookup", "()Ljava/lang/invoke/MethodHandles$Lookup;", "Code",
        };
        for (String text : texts) {
            file.writeByte(1); // Entries 1 to 9.
            file.writeUTF(text);
        }
        for (int text = 1; text <= 4; text++) {
            file.writeByte(7); // 10 the program's class, 11 this one, 12 Object, 13 MethodHandles.
            file.writeShort(text);
        }
        entry(file, 12, 5, 6); // 14: name and type of main
        entry(file, 12, 7, 8); // 15: name and type of lookup
        entry(file, 10, 10, 14); // 16: the program's main
        entry(file, 10, 13, 15); // 17: MethodHandles.lookup
        // Final and synthetic, this class, its parent, no interfaces, no fields, two methods.
        for (int value : new int[] {0x1030, 11, 12, 0, 0, 2}) {
            file.writeShort(value);
        }
        method(file, 5, 6, 0x2a, 0xb8, 0, 16, 0xb1); // aload_0, invokestatic, return
        method(file, 7, 8, 0xb8, 0, 17, 0xb0); // invokestatic, areturn
        file.writeShort(0);
        return bytes.toByteArray();
    }

    private static void entry(DataOutputStream file, int kind, int first, int second) throws IOException {
        file.writeByte(kind);
        file.writeShort(first);
        file.writeShort(second);
    }

    /** A static method with one value on its stack and one variable at most. */
    private static void method(DataOutputStream file, int name, int type, int... code) throws IOException {
        for (int value : new int[] {8, name, type, 1, 9}) {
            file.writeShort(value);
        }
        file.writeInt(12 + code.length);
        file.writeShort(1);
        file.writeShort(1);
        file.writeInt(code.length);
        for (int value : code) {
            file.writeByte(value);
        }
        file.writeShort(0);
        file.writeShort(0);
    }

    /** Called once to go the way that a program's start goes. */
    static final class Touched {
        public static void main(String[] arguments) {}
    }

    /** Loads what short programs use, without touching any stream of theirs. */
    private static void touch() throws Throwable {
        caller(Touched.class).invokeExact(new String[0]);
        PrintStream out = new PrintStream(new ByteArrayOutputStream(), true);
        List<Integer> numbers = new ArrayList<>();
        Scanner scanner = new Scanner(new ByteArrayInputStream("1 2 3\n4\n".getBytes()));
        while (scanner.hasNextInt()) {
            numbers.add(scanner.nextInt());
        }
        Map<String, Integer> counts = new HashMap<>();
        numbers.forEach(number -> counts.merge("n" + number, 1, Integer::sum));
        out.println("Hello, World! " + counts + numbers.size() + 1.5);
        out.printf("%d %s %.2f%n", 1, "a", 1.5);
        out.println(numbers.stream().map(number -> number * 2).collect(Collectors.toList()));
    }
}
