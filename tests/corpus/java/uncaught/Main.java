/** An exception that nobody catches, with a cause, and a hook that still runs. */
public class Main {
    static int order(int count) {
        if (count > 3) {
            throw new IllegalStateException(count + " wanted", new RuntimeException("the shelf is empty"));
        }
        return count;
    }

    public static void main(String[] args) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("hook")));
        try {
            System.out.println(order(2));
            System.out.println(order(5));
        } finally {
            System.out.println("finally");
        }
    }
}
