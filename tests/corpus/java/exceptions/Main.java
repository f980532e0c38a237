import java.io.*;
import java.util.*;

/** Handlers, their order, causes, resources that close themselves, what is suppressed. */
public class Main {
    static class OutOfStock extends Exception {
        OutOfStock(int wanted, Throwable cause) {
            super(wanted + " wanted", cause);
        }
    }

    record Door(String name) implements AutoCloseable {
        Door {
            System.out.println("open " + name);
        }

        @Override
        public void close() throws IOException {
            System.out.println("close " + name);
            if (name.equals("inner")) throw new IOException("stuck");
        }
    }

    static String order() {
        try {
            try {
                Object nothing = null;
                return nothing.toString();
            } catch (NullPointerException cause) {
                throw new OutOfStock(5, cause);
            } finally {
                System.out.println("first finally");
            }
        } catch (OutOfStock failure) {
            return failure.getMessage() + " because of " + failure.getCause().getClass().getSimpleName();
        } finally {
            System.out.println("second finally");
        }
    }

    @SuppressWarnings("finally")
    static int overrides() {
        try {
            throw new IllegalStateException("lost");
        } finally {
            return 7;
        }
    }

    public static void main(String[] args) throws Exception {
        System.out.println(order() + " " + overrides());
        try (var outer = new Door("outer"); var inner = new Door("inner")) {
            throw new IllegalArgumentException("inside " + outer.name() + " and " + inner.name());
        } catch (IllegalArgumentException failure) {
            System.out.println(failure.getMessage() + ", suppressed " + Arrays.toString(failure.getSuppressed()));
        }
        var one = new int[1];
        for (var text : List.of("12", "zwölf", "99")) {
            try {
                int index = Integer.parseInt(text);
                System.out.println(one[index]);
            } catch (NumberFormatException | ArrayIndexOutOfBoundsException failure) {
                System.out.println(failure.getMessage());
            }
        }
        try {
            Object[] strings = new String[1];
            strings[0] = 1;
        } catch (ArrayStoreException wrong) {
            System.out.println(wrong);
        }
        try {
            new ArrayList<>(List.of(1, 2, 3)).forEach(n -> { if (n == 2) throw new UncheckedIOException(new IOException("at " + n)); });
        } catch (UncheckedIOException wrapped) {
            System.out.println(wrapped.getCause().getMessage());
        }
        var thread = new Thread(() -> { throw new IllegalStateException("in a thread"); });
        thread.setUncaughtExceptionHandler((which, failure) -> System.out.println("handler: " + failure.getMessage()));
        thread.start();
        thread.join();
    }
}
