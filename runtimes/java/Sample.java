package sample;

import java.io.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.function.*;
import java.util.stream.*;

/** Uses a bit of everything, so that the archive holds the classes that the compiler needs for it. */
public class Sample {
    sealed interface Shape permits Circle, Square {}

    record Circle(double radius) implements Shape {}

    record Square(double side) implements Shape {}

    enum Colour {
        RED, GREEN;

        Colour next() {
            return values()[(ordinal() + 1) % values().length];
        }
    }

    abstract static class Base<T extends Comparable<T>> {
        abstract T get();
    }

    static double area(Shape shape) {
        if (shape instanceof Circle circle) {
            return Math.PI * circle.radius() * circle.radius();
        }
        return switch (shape.getClass().getSimpleName()) {
            case "Square" -> ((Square) shape).side();
            default -> 0;
        };
    }

    public static void main(String[] args) throws Exception {
        Map<String, List<Integer>> lengths = new TreeMap<>();
        try (BufferedReader reader = new BufferedReader(new InputStreamReader(System.in))) {
            for (String line; (line = reader.readLine()) != null; ) {
                lengths.computeIfAbsent(line, key -> new ArrayList<>()).add(line.length());
            }
        } catch (IOException error) {
            throw new IllegalStateException("cannot read: " + error, error);
        } finally {
            lengths.remove("");
        }
        Supplier<Integer> three = () -> 3;
        Base<String> base = new Base<>() {
            String get() {
                return "a" + three.get();
            }
        };
        int[][] grid = new int[3][4];
        for (int[] row : grid) {
            Arrays.fill(row, 1);
        }
        var text = """
            text""";
        ExecutorService pool = Executors.newFixedThreadPool(2);
        pool.submit(() -> System.out.println(base.get() + Colour.RED.next() + text)).get();
        pool.shutdown();
        System.out.printf("%s %d%n", IntStream.range(0, 5).mapToObj(String::valueOf)
                .collect(Collectors.joining(",")), lengths.size());
        long total = 0;
        do {
            total += area(new Circle(1)) > 3 ? 1 : 'b';
        } while (total < 0);
        synchronized (grid) {
            assert total != 0 : "no";
        }
    }
}
