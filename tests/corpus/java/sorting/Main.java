import java.util.*;
import java.util.function.Function;
import java.util.stream.*;

/** A large sort, a stable one, composed orders, sorted collections, groups. */
public class Main {
    record Person(String name, int age) {}

    enum Suit { CLUBS, DIAMONDS, HEARTS, SPADES }

    public static void main(String[] args) {
        var random = new Random(42);
        int[] numbers = random.ints(300_000).toArray();
        long sum = Arrays.stream(numbers).asLongStream().sum();
        int some = numbers[77];
        Arrays.parallelSort(numbers);
        boolean ordered = IntStream.range(1, numbers.length).allMatch(index -> numbers[index - 1] <= numbers[index]);
        System.out.println(ordered + " " + (Arrays.stream(numbers).asLongStream().sum() == sum) + " " + (numbers[Arrays.binarySearch(numbers, some)] == some));
        System.out.println(new Random(42).nextInt(100) + " " + new Random(42).nextLong());

        var people = List.of(new Person("Ada", 36), new Person("Bo", 24), new Person("Cy", 36), new Person("Di", 24), new Person("Ed", 30));
        Function<Comparator<Person>, String> names = order -> people.stream().sorted(order).map(Person::name).collect(Collectors.joining(" "));
        System.out.println(names.apply(Comparator.comparingInt(Person::age)));
        System.out.println(names.apply(Comparator.comparingInt(Person::age).reversed().thenComparing(Person::name, Comparator.reverseOrder())));
        Map<Integer, Long> ages = people.stream().collect(Collectors.groupingBy(Person::age, TreeMap::new, Collectors.counting()));
        System.out.println(ages);

        var queue = new PriorityQueue<>(Comparator.comparing(String::length).thenComparing(Comparator.naturalOrder()));
        queue.addAll(List.of("pear", "fig", "apple", "kiwi"));
        System.out.println(Stream.generate(queue::poll).limit(4).toList());
        var tree = new TreeSet<>(List.of(1, 3, 5, 7, 9));
        System.out.println(tree.headSet(5) + " " + tree.ceiling(4) + " " + tree.descendingSet() + " " + tree.pollFirst());
        System.out.println(new EnumMap<>(Map.of(Suit.SPADES, 1, Suit.CLUBS, 2)) + " " + Suit.valueOf("HEARTS").compareTo(Suit.CLUBS));
        var words = Arrays.asList("b", null, "A", "c");
        words.sort(Comparator.nullsFirst(String.CASE_INSENSITIVE_ORDER));
        System.out.println(words);
        try {
            new TreeSet<Object>(List.of(1, "a"));
        } catch (ClassCastException mixed) {
            System.out.println("no common order");
        }
    }
}
