import java.util.*;
import java.util.function.*;

/** Recursion within the stack, beyond it, on a larger one, and over sealed types. */
public class Main {
    sealed interface Expression permits Number, Sum, Product {}
    record Number(int value) implements Expression {}
    record Sum(Expression left, Expression right) implements Expression {}
    record Product(Expression left, Expression right) implements Expression {}

    static int evaluate(Expression expression) {
        if (expression instanceof Number number) {
            return number.value();
        } else if (expression instanceof Sum sum) {
            return evaluate(sum.left()) + evaluate(sum.right());
        } else if (expression instanceof Product product) {
            return evaluate(product.left()) * evaluate(product.right());
        }
        throw new AssertionError(expression);
    }

    static int depth(int number) {
        return number == 0 ? 0 : 1 + depth(number - 1);
    }

    static final Map<List<Integer>, Long> known = new HashMap<>();

    static long ways(int[] coins, int first, int amount) {
        if (amount == 0) return 1;
        if (amount < 0 || first == coins.length) return 0;
        var key = List.of(first, amount);
        if (!known.containsKey(key)) {
            known.put(key, ways(coins, first, amount - coins[first]) + ways(coins, first + 1, amount));
        }
        return known.get(key);
    }

    public static void main(String[] args) throws InterruptedException {
        System.out.println(depth(2000));
        try {
            depth(Integer.MAX_VALUE);
        } catch (StackOverflowError overflow) {
            System.out.println("caught " + overflow.getClass().getSimpleName());
        }
        var large = new Thread(null, () -> System.out.println(depth(500_000)), "large", 128L << 20);
        large.start();
        large.join();
        System.out.println(evaluate(new Product(new Sum(new Number(2), new Number(3)), new Number(6))));
        System.out.println(ways(new int[] {100, 50, 20, 10, 5, 2, 1}, 0, 100));
        var fibonacci = new Object() {
            final IntUnaryOperator of = n -> n < 2 ? n : this.of.applyAsInt(n - 1) + this.of.applyAsInt(n - 2);
        };
        System.out.println(fibonacci.of.applyAsInt(20));
    }
}
