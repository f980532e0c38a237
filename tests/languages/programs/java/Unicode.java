import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

public class Unicode {
    public static void main(String[] args) throws java.io.IOException {
        var line = new String(System.in.readAllBytes(), StandardCharsets.UTF_8);
        System.out.println("grüße, 世界");
        System.out.print(line);
        Files.writeString(Path.of("ü-文.txt"), line);
    }
}
