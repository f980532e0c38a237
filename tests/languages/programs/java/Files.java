import java.nio.file.Path;

public class Files {
    public static void main(String[] args) throws java.io.IOException {
        var numbers = java.nio.file.Files.readAllLines(Path.of("in/numbers.txt"));
        long sum = numbers.stream().mapToLong(Long::parseLong).sum();
        java.nio.file.Files.writeString(Path.of("sum.txt"), sum + "\n");
    }
}
