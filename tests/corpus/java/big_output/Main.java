import java.io.*;
import java.nio.charset.StandardCharsets;

/** Half a megabyte through a buffered stream. */
public class Main {
    public static void main(String[] args) {
        try (var out = new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out)), false, StandardCharsets.US_ASCII)) {
            var middle = "abcdefghij".repeat(4);
            for (int number = 0; number < 10_000; number++) {
                out.printf("%05d %s %09d%n", number, middle, number * number);
            }
        }
    }
}
