package sandbox.warm;

import com.sun.tools.javac.Main;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.PrintWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A compiler that has started and waits for sources; then it does what compile.sh does. */
public final class WarmCompile {
    private static final Path CLASSES = Path.of(".program/classes");
    /** How often the sample is compiled: more makes later compilations faster, and the start slower. */
    private static final int ROUNDS = 4;

    private WarmCompile() {}

    public static void main(String[] start) throws Exception {
        touch();
        WarmJob job = WarmJob.await();
        // The job's command: sh -c SCRIPT compile JAVAC ENTRY SOURCES. Its layer is for a cold start.
        String javac = System.getProperty("java.home") + "/bin/javac";
        if (!job.fitsBut("LAYER") || !Files.isSameFile(Path.of(job.command.get(4)), Path.of(javac))) {
            job.runCold();
        }
        String entry = job.command.get(5);
        List<String> sources = new ArrayList<>(job.command.subList(6, job.command.size()));
        entry = named(entry, sources);
        int code = Main.compile(arguments(".program/classes", sources));
        if (code == 0 && !Files.isDirectory(CLASSES)) {
            job.runCold(); // Nothing was made, which the script puts in its own words.
        }
        if (code == 0) {
            code = writeMain(entry);
        }
        System.out.flush();
        System.err.flush();
        if (code == 0) {
            WarmJob.announceEarlyExit(false);
        }
        Runtime.getRuntime().halt(code);
    }

    private static String[] arguments(String output, List<String> sources) {
        List<String> all = new ArrayList<>(List.of("-encoding", "UTF-8", "-cp", "lib/*", "-d", output));
        all.addAll(sources);
        return all.toArray(new String[0]);
    }

    /** Compiles the sample, so that the compiler's code is loaded and translated. */
    private static void touch() throws IOException {
        WarmJob.announceEarlyExit(true);
        Path directory = Files.createTempDirectory("warm");
        try (InputStream sample = WarmCompile.class.getResourceAsStream("/Sample.java")) {
            Files.copy(sample, directory.resolve("Sample.java"));
        }
        String[] arguments = arguments(directory.toString(), List.of(directory.resolve("Sample.java").toString()));
        for (int round = 0; round < ROUNDS; round++) {
            Main.compile(arguments, new PrintWriter(Writer.nullWriter()));
        }
        try (Stream<Path> paths = Files.walk(directory)) {
            paths.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }

    /**
     * Code that came as text is Main.java, but its public class may have another name, and the compiler wants
     * the file to have the same. A single file may be called anything.
     */
    private static String named(String entry, List<String> sources) throws IOException {
        boolean free = entry.equals("Main.java") || sources.size() == 1 && !entry.contains("/");
        if (!free) {
            return entry;
        }
        List<String> names = found(entry, "(?m)^[ \\t\\x0B\\f\\r]*public +(?:(?:abstract|final|sealed|non-sealed"
                + "|strictfp) +)*(?:class|interface|enum|record) +([A-Za-z0-9_$]+)");
        if (names.isEmpty() || names.contains(entry.replaceFirst("\\.java$", ""))
                || Files.exists(Path.of(names.get(0) + ".java"))) {
            return entry;
        }
        String renamed = names.get(0) + ".java";
        Files.move(Path.of(entry), Path.of(renamed));
        sources.replaceAll(source -> source.equals(entry) ? renamed : source);
        return renamed;
    }

    /** What the pattern's group is, wherever it fits. */
    private static List<String> found(String file, String pattern) throws IOException {
        List<String> names = new ArrayList<>();
        Matcher matcher = Pattern.compile(pattern).matcher(text(Path.of(file)));
        while (matcher.find()) {
            names.add(matcher.group(1));
        }
        return names;
    }

    private static String text(Path file) {
        try {
            return new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
        } catch (IOException error) {
            return "";
        }
    }

    private static boolean hasMain(Path file) {
        String text = text(file);
        return text.contains("([Ljava/lang/String;)V") && text.contains("main");
    }

    /** Finds the class to start, in the order of compile.sh, and writes its name down. */
    private static int writeMain(String entry) throws IOException {
        String stem = entry.substring(entry.lastIndexOf('/') + 1).replaceFirst("\\.java$", "");
        if (hasMain(CLASSES.resolve(stem + ".class"))) {
            return start(CLASSES.resolve(stem + ".class"));
        }
        List<Path> classes = classes(path -> true);
        List<Path> all = classes.stream().filter(WarmCompile::hasMain).collect(Collectors.toList());
        List<Path> fromEntry = all.stream().filter(path -> text(path).contains(stem + ".java"))
                .collect(Collectors.toList());
        all = fromEntry.isEmpty() ? all : fromEntry;
        List<String> names = new ArrayList<>(List.of(stem));
        names.addAll(found(entry, "(?:class|interface|enum|record) +([A-Za-z0-9_$]+)"));
        for (String name : names) {
            for (Path path : all) {
                if (path.endsWith(name + ".class")) {
                    return start(path);
                }
            }
        }
        if (!all.isEmpty()) {
            return start(all.get(0));
        }
        // Newer versions also start a main method without arguments.
        for (Predicate<Path> chosen : List.<Predicate<Path>>of(path -> path.endsWith(stem + ".class"), path -> true)) {
            for (Path path : classes(chosen)) {
                if (text(path).contains("main")) {
                    return start(path);
                }
            }
        }
        System.err.println("error: no class has a method 'public static void main(String[])'");
        return 1;
    }

    private static List<Path> classes(Predicate<Path> chosen) throws IOException {
        try (Stream<Path> paths = Files.walk(CLASSES)) {
            return paths.filter(path -> path.toString().endsWith(".class"))
                    .filter(path -> !path.getFileName().toString().contains("$"))
                    .filter(chosen).sorted(Comparator.comparing(Path::toString)).collect(Collectors.toList());
        }
    }

    private static int start(Path file) throws IOException {
        String name = CLASSES.relativize(file).toString().replaceFirst("\\.class$", "").replace('/', '.');
        Files.writeString(Path.of(".program/main"), name + "\n");
        return 0;
    }
}
