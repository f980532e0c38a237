import java.lang.reflect.*;
import java.util.*;
import java.util.function.*;
import java.util.stream.*;

/** Records, enums with behaviour, streams, generics, inner classes, reflection, text blocks. */
public class Main {
    record Point(int x, int y) {
        Point {
            if (x < 0) throw new IllegalArgumentException("x < 0");
        }

        static Point origin() {
            return new Point(0, 0);
        }
    }

    enum Operation implements IntBinaryOperator {
        PLUS("+") {
            public int applyAsInt(int left, int right) { return left + right; }
        },
        TIMES("×") {
            public int applyAsInt(int left, int right) { return left * right; }
        };

        final String symbol;

        Operation(String symbol) { this.symbol = symbol; }
    }

    interface Greeter {
        String name();
        default String greet() { return "hello " + name(); }
    }

    class Inner implements Greeter {
        public String name() { return "inner of " + label; }
    }

    final String label = "outer";

    @SafeVarargs
    static <T extends Comparable<? super T>> T largest(T first, T... rest) {
        return Stream.concat(Stream.of(first), Arrays.stream(rest)).max(Comparator.naturalOrder()).get();
    }

    public static void main(String[] args) throws Exception {
        System.out.println(new Point(1, 2).equals(new Point(1, 2)) + " " + Point.origin() + " " + new Point(3, 4).hashCode());
        for (var operation : Operation.values()) {
            System.out.print(6 + operation.symbol + 7 + "=" + operation.applyAsInt(6, 7) + " ");
        }
        System.out.println(switch (Operation.PLUS) { case PLUS -> "p"; case TIMES -> { yield "t"; } });
        var text = """
            the quick fox
              and the lazy dog
            """;
        Map<Integer, String> byLength = text.lines().flatMap(line -> Arrays.stream(line.strip().split(" ")))
            .collect(Collectors.groupingBy(String::length, TreeMap::new, Collectors.joining("+")));
        System.out.println(byLength);
        System.out.println(Stream.iterate(new int[] {0, 1}, pair -> new int[] {pair[1], pair[0] + pair[1]})
            .limit(10).map(pair -> String.valueOf(pair[0])).collect(Collectors.joining(",", "[", "]")));
        System.out.println(IntStream.rangeClosed(1, 10).boxed().collect(Collectors.partitioningBy(n -> n % 3 == 0, Collectors.summingInt(n -> n))));
        System.out.println(largest(3, 9, 4) + " " + largest("b") + " " + new Main().new Inner().greet());
        Function<Integer, Function<Integer, Integer>> add = a -> b -> a + b;
        BinaryOperator<Integer> power = (base, exponent) -> (int) Math.pow(base, exponent);
        System.out.println(add.apply(2).apply(3) + " " + power.andThen(n -> n + 1).apply(2, 10) + " " + Optional.<String>empty().map(String::length).orElse(-1));
        var components = Arrays.stream(Point.class.getRecordComponents()).map(RecordComponent::getName).toList();
        System.out.println(components + " " + Modifier.toString(Point.class.getModifiers()) + " " + Point.class.getDeclaredMethod("origin").invoke(null));
        var greeter = (Greeter) Proxy.newProxyInstance(Main.class.getClassLoader(), new Class<?>[] {Greeter.class}, (proxy, method, values) -> method.getName() + "!");
        System.out.println(greeter.name() + " " + greeter.greet());
        Integer small = 127, same = 127, big = 128, other = 128;
        System.out.println((small == same) + " " + big.equals(other) + " " + "ab".repeat(2).chars().filter(c -> c == 'a').count());
    }
}
