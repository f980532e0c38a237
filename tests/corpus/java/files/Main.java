import java.io.*;
import java.nio.*;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.stream.Collectors;
import java.util.zip.*;

/** Text and binary files, positions, directories, archives, mapped memory, objects in a file. */
public class Main {
    record Bird(String name, double grams) implements Serializable {}

    public static void main(String[] args) throws Exception {
        var root = Path.of("data");
        Files.createDirectories(root.resolve("deep/er"));
        var notes = Files.writeString(root.resolve("notes.txt"), "one\ntwo\nthree\n");
        Files.writeString(notes, "four\n", StandardOpenOption.APPEND);
        System.out.println(Files.readAllLines(notes) + " " + Files.size(notes));

        var records = root.resolve("deep/records.bin");
        try (var file = new RandomAccessFile(records.toFile(), "rw")) {
            for (int number = 0; number < 100; number++) {
                file.writeInt(number);
                file.writeDouble(number / 4.0);
            }
            file.seek(12 * 42);
            System.out.println(file.readInt() + " " + file.readDouble() + " " + file.length());
        }
        try (var channel = FileChannel.open(records, StandardOpenOption.READ)) {
            var mapped = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            System.out.println(mapped.getInt(12 * 7) + " " + mapped.order());
        }
        var archive = Files.createTempFile("corpus", ".zip");
        try (var zip = new ZipOutputStream(Files.newOutputStream(archive))) {
            zip.putNextEntry(new ZipEntry("notes.txt"));
            Files.copy(notes, zip);
        }
        try (var zip = new ZipFile(archive.toFile())) {
            System.out.println(new String(zip.getInputStream(zip.getEntry("notes.txt")).readAllBytes(), StandardCharsets.UTF_8).length());
        }
        Files.delete(archive);

        var bytes = new ByteArrayOutputStream();
        new ObjectOutputStream(bytes).writeObject(new Bird("wren", 9.5));
        System.out.println(new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray())).readObject());
        Files.createSymbolicLink(root.resolve("link"), Path.of("notes.txt"));
        try (var tree = Files.walk(root)) {
            System.out.println(tree.map(Path::toString).sorted().collect(Collectors.joining(" ")));
        }
        try {
            Files.delete(root);
        } catch (DirectoryNotEmptyException full) {
            System.out.println("not empty: " + full.getMessage());
        }
        try (var reader = new BufferedReader(new FileReader("absent.txt"))) {
            System.out.println(reader.readLine());
        } catch (FileNotFoundException absent) {
            System.out.println(absent.getMessage());
        }
        Files.write(Path.of("result.txt"), java.util.List.of("kept", "Ω"));
    }
}
